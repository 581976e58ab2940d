"""Names of people and towns that do not exist, for made-up texts: a few hundred of each, put together from parts."""

from __future__ import annotations

from typing import NamedTuple

from escala.data.generated import Draws, pick

WOMEN = (
    "Ada", "Alma", "Anna", "Berta", "Carla", "Clara", "Dora", "Edith", "Elena", "Emma", "Erna", "Eva", "Flora",
    "Greta", "Hanna", "Helga", "Ida", "Ines", "Irma", "Julia", "Karin", "Laura", "Lena", "Lydia", "Maria", "Marta",
    "Nora", "Olga", "Paula", "Rosa", "Ruth", "Sara", "Sonia", "Tilda", "Vera", "Wilma",
)  # fmt: skip
MEN = (
    "Adam", "Albert", "Anton", "Arne", "Bruno", "Carl", "Daniel", "David", "Egon", "Emil", "Erik", "Felix", "Georg",
    "Gustav", "Hans", "Hugo", "Igor", "Ivan", "Jacob", "Jonas", "Karel", "Leo", "Lucas", "Magnus", "Marco", "Nils",
    "Oscar", "Otto", "Paul", "Peter", "Ralf", "Rudolf", "Simon", "Stefan", "Tomas", "Victor",
)  # fmt: skip
_SURNAME_BEGINS = (
    "Al", "Ar", "Bel", "Ber", "Bran", "Cal", "Cor", "Dal", "Dor", "El", "Fen", "Gar", "Hal", "Har", "Kal", "Kor",
    "Lam", "Lin", "Mar", "Mel", "Mor", "Nor", "Or", "Pel", "Ran", "Sal", "Sel", "Tal", "Tor", "Val", "Var", "Wen",
    "Wil", "Zel",
)  # fmt: skip
_SURNAME_ENDS = (
    "akis", "ano", "berg", "bury", "den", "dini", "eau", "etti", "gaard", "holm", "ic", "ides", "lund", "mann",
    "mont", "ova", "quist", "ros", "sen", "sky", "stad", "ton", "vik", "wood",
)  # fmt: skip
_TOWN_BEGINS = (
    "Ash", "Birk", "Blen", "Brim", "Clay", "Crom", "Dun", "East", "Elm", "Fal", "Glen", "Grim", "Hazel", "High",
    "Kel", "Kings", "Lang", "Lime", "Mill", "New", "North", "Oak", "Pen", "Quarry", "Raven", "Red", "Salt", "Shel",
    "Stone", "Thorn", "Up", "Wal", "West", "White",
)  # fmt: skip
_TOWN_ENDS = (
    "borough", "bridge", "brook", "by", "cliff", "combe", "dale", "field", "ford", "gate", "ham", "haven", "hurst",
    "ley", "mere", "minster", "mouth", "port", "stead", "stow", "thorpe", "wick", "worth",
)  # fmt: skip


class Person(NamedTuple):
    """Somebody; `he` or `she`."""

    first: str
    last: str
    pronoun: str

    @property
    def full(self) -> str:
        return f"{self.first} {self.last}"


def person(draw: Draws, last: str = "") -> Person:
    """Somebody new, of the family `last` where one is given."""
    pronoun = pick(draw, ("he", "she"))
    first = pick(draw, MEN if pronoun == "he" else WOMEN)
    return Person(first, last or surname(draw), pronoun)


def surname(draw: Draws) -> str:
    """One of 816 family names."""
    return pick(draw, _SURNAME_BEGINS) + pick(draw, _SURNAME_ENDS)


def town(draw: Draws) -> str:
    """One of 782 towns."""
    return pick(draw, _TOWN_BEGINS) + pick(draw, _TOWN_ENDS)
