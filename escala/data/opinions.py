"""The words and sentences that made-up reviews are put together from."""

from __future__ import annotations

ASPECTS = (
    "acting", "atmosphere", "beginning", "camera work", "cast", "casting", "colouring", "dialogue", "direction",
    "editing", "ending", "first half", "humour", "lead role", "lighting", "music", "narration", "opening", "pace",
    "photography", "plot", "premise", "production", "romance", "scenery", "score", "script", "second half",
    "set design", "sound", "story", "suspense", "theme song", "title role", "tone", "translation", "villain",
    "writing",
)  # fmt: skip
GOOD_MILD = (
    "agreeable", "amusing", "believable", "charming", "clever", "competent", "decent", "diverting", "engaging",
    "enjoyable", "fresh", "good", "interesting", "likeable", "lively", "nice", "pleasant", "smart", "solid",
    "thoughtful", "warm", "well made", "witty", "worthwhile",
)  # fmt: skip
GOOD_STRONG = (
    "a triumph", "amazing", "beautiful", "breathtaking", "brilliant", "dazzling", "excellent", "extraordinary",
    "fantastic", "flawless", "gripping", "hilarious", "magnificent", "outstanding", "perfect", "remarkable",
    "splendid", "stunning", "superb", "terrific", "unforgettable", "wonderful",
)  # fmt: skip
BAD_MILD = (
    "bland", "clumsy", "confused", "disappointing", "dull", "flat", "forgettable", "lame", "long-winded",
    "mediocre", "muddled", "ordinary", "predictable", "shallow", "silly", "slow", "stale", "stiff", "thin", "tired",
    "uneven", "uninspired", "weak", "wooden",
)  # fmt: skip
BAD_STRONG = (
    "a disaster", "abysmal", "appalling", "atrocious", "awful", "dreadful", "embarrassing", "excruciating",
    "hideous", "horrible", "insulting", "laughable", "miserable", "painful", "pathetic", "pointless", "ridiculous",
    "rotten", "terrible", "unbearable", "unwatchable", "worthless",
)  # fmt: skip
LOVED = ("admired", "adored", "enjoyed", "loved", "relished", "was moved by", "was thrilled by", "laughed with")
HATED = ("could not stand", "despised", "disliked", "hated", "loathed", "was annoyed by", "was bored by", "yawned at")

AGAINST = ("not", "never", "hardly", "anything but", "far from", "by no means", "not in the least", "at no point")
"""Turn what follows into its opposite."""
MUCH = ("really", "utterly", "truly", "absolutely", "without any doubt", "from start to finish")
"""Make what is said weigh more."""
BITTERLY = ("I am sorry to say", "frankly", "to my mind", "in my opinion", "as far as I can tell", "to be fair")
"""Say nothing, for or against."""
OTHERS = (
    "My brother", "The man behind me", "The newspaper", "My neighbour", "Everybody in the queue",
    "A colleague of mine", "The critic of the evening paper", "My sister", "The poster outside", "The leaflet",
    "A friend from school", "The presenter on the radio",
)  # fmt: skip
"""Whose opinion does not count."""

PEOPLE = (
    "a baker", "a banker", "a captain", "a carpenter", "a composer", "a detective", "a doctor", "a gardener",
    "a general", "a journalist", "a judge", "a lawyer", "a librarian", "a locksmith", "a magician", "a miner",
    "a nurse", "a painter", "a pilot", "a politician", "a priest", "a sailor", "a shepherd", "a singer",
    "a smuggler", "a soldier", "a spy", "a student", "a surgeon", "a tailor", "a teacher", "a thief", "a waiter",
    "a widow", "a writer",
)  # fmt: skip
PLACES = (
    "Antwerp", "Athens", "Bergen", "Berlin", "Boston", "Cadiz", "Cairo", "Chicago", "Cork", "Dublin", "Geneva",
    "Genoa", "Hamburg", "Havana", "Lagos", "Lima", "Lisbon", "London", "Madrid", "Manila", "Naples", "New York",
    "Nice", "Oslo", "Paris", "Porto", "Prague", "Quito", "Riga", "Rome", "Santander", "Seville", "Tokyo", "Turin",
    "Vienna", "Warsaw",
)  # fmt: skip
DEEDS = (
    "buys an old boat", "comes home after the war", "discovers a secret room", "falls in love", "finds a letter",
    "hides from the police", "inherits a farm", "is accused of murder", "joins a travelling circus",
    "learns to play the violin", "loses everything at cards", "meets an old enemy", "misses the last train",
    "moves into an empty house", "opens a small restaurant", "plans one last robbery", "raises a wolf",
    "runs for mayor", "searches for a lost brother", "sets out across the desert", "steals a painting",
    "takes in a stranger", "wakes up in a hospital", "wins the lottery",
)  # fmt: skip
SEEN = (
    "at a festival", "at home", "in a half empty cinema", "in the original language", "last night",
    "on a long flight", "on a rainy afternoon", "on television", "twice", "with my parents", "with some friends",
    "years ago",
)  # fmt: skip
VERDICTS_GOOD = (
    "go and see it", "I would watch it again tomorrow", "it deserves all its prizes", "my evening was well spent",
    "it is worth the ticket", "do not miss it", "I left with a smile",
)  # fmt: skip
VERDICTS_BAD = (
    "stay at home", "I want my money back", "it deserves none of its prizes", "my evening was wasted",
    "it is not worth the ticket", "give it a miss", "I left before the end",
)  # fmt: skip
CLOSINGS = ("All in all", "In short", "In the end", "So", "To sum up", "When all is said and done")
