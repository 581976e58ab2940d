"""Where the named sets are published, file by file, with size and checksum where these are known for certain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedFile:
    """One file: its https address, and its `size` in bytes and `sha256` in hex; None: not known, so not compared."""

    address: str
    size: int | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.address.rpartition("/")[2]


@dataclass(frozen=True)
class Published:
    """A set as its publisher gives it. `archive`: its one file is unpacked; otherwise the files lie side by side."""

    files: tuple[PublishedFile, ...]
    licence: str
    archive: bool = False


_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist"
_FASHION = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
_CIFAR = "https://www.cs.toronto.edu/~kriz"
_SQUAD = "https://rajpurkar.github.io/SQuAD-explorer/dataset"
_WIKITEXT = "https://wikitext.smerity.com"

PUBLISHED: dict[str, Published] = {
    "mnist": Published(
        (
            PublishedFile(
                f"{_MNIST}/train-images-idx3-ubyte.gz",
                9_912_422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            PublishedFile(
                f"{_MNIST}/train-labels-idx1-ubyte.gz",
                28_881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            PublishedFile(
                f"{_MNIST}/t10k-images-idx3-ubyte.gz",
                1_648_877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            PublishedFile(
                f"{_MNIST}/t10k-labels-idx1-ubyte.gz",
                4_542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
        "Yann LeCun and Corinna Cortes, CC BY-SA 3.0",
    ),
    "fashion-mnist": Published(
        (
            PublishedFile(
                f"{_FASHION}/train-images-idx3-ubyte.gz",
                26_421_880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            PublishedFile(
                f"{_FASHION}/train-labels-idx1-ubyte.gz",
                None,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            PublishedFile(
                f"{_FASHION}/t10k-images-idx3-ubyte.gz",
                None,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            PublishedFile(
                f"{_FASHION}/t10k-labels-idx1-ubyte.gz",
                None,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ),
        "Zalando SE, MIT",
    ),
    "cifar10": Published(
        (
            PublishedFile(
                f"{_CIFAR}/cifar-10-python.tar.gz",
                170_498_071,
                "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
            ),
        ),
        "Alex Krizhevsky, no licence stated",
        archive=True,
    ),
    "cifar100": Published(
        (
            PublishedFile(
                f"{_CIFAR}/cifar-100-python.tar.gz",
                169_001_437,
                "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
            ),
        ),
        "Alex Krizhevsky, no licence stated",
        archive=True,
    ),
    "imdb": Published(
        (
            PublishedFile(
                "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                84_125_825,
                "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
            ),
        ),
        "Andrew Maas, no licence stated; cite the paper of 2011",
        archive=True,
    ),
    "wikitext-103": Published(
        (
            PublishedFile(
                f"{_WIKITEXT}/wikitext-103-raw-v1.zip",
                191_984_949,
                "91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794",
            ),
        ),
        "Stephen Merity, CC BY-SA 3.0",
        archive=True,
    ),
    "wikitext-2": Published(
        (
            PublishedFile(
                f"{_WIKITEXT}/wikitext-2-raw-v1.zip",
                4_721_645,
                "ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11",
            ),
        ),
        "Stephen Merity, CC BY-SA 3.0",
        archive=True,
    ),
    "squad": Published(
        (
            PublishedFile(
                f"{_SQUAD}/train-v1.1.json",
                30_288_272,
                "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955",
            ),
            PublishedFile(
                f"{_SQUAD}/dev-v1.1.json",
                4_854_279,
                "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
            ),
        ),
        "Pranav Rajpurkar, CC BY-SA 4.0",
    ),
}
"""Each sum stands alike in several independent publications; sizes are left out where they do not."""

OTHER_WAYS: dict[str, str] = {
    "fortunes": "install Debian's package: apt install fortunes",
    "wordnet": "install Debian's package: apt install wordnet-base",
}
"""Named sets that come another way."""
