"""What made-up articles are about: each topic has its own things, deeds, trades and qualities."""

from __future__ import annotations

from typing import NamedTuple


class Topic(NamedTuple):
    """Words that go together: `things` take an s in the plural, `deeds` are verbs that take -ed."""

    name: str
    trades: tuple[str, ...]
    things: tuple[str, ...]
    deeds: tuple[str, ...]
    qualities: tuple[str, ...]
    places: tuple[str, ...]


TOPICS: tuple[Topic, ...] = (
    Topic("seafaring", ("captain", "pilot", "sailmaker"),
          ("anchor", "boat", "compass card", "lantern", "mast", "net", "oar", "rope", "sail", "schooner"),
          ("anchor", "load", "repaint", "tow", "unload", "haul"),
          ("leaking", "seaworthy", "sunken", "tarred", "weathered"), ("the harbour", "the lighthouse", "the quay")),
    Topic("farming", ("farmer", "miller", "shepherd"),
          ("barn", "cow", "fence", "field", "lamb", "meadow", "mill", "orchard", "plough", "wagon"),
          ("plough", "water", "mend", "fatten", "harvest", "shear"),
          ("fertile", "muddy", "overgrown", "ripe", "sturdy"), ("the valley", "the mill", "the upper pasture")),
    Topic("music", ("composer", "organist", "violinist"),
          ("aria", "cello", "choir", "concert", "flute", "melody book", "organ", "quartet", "song", "violin"),
          ("perform", "rehears", "practis", "transpos", "conduct", "record"),
          ("cheerful", "melancholy", "out of tune", "rousing", "solemn"),
          ("the concert hall", "the chapel", "the conservatory")),
    Topic("mining", ("engineer", "foreman", "miner"),
          ("beam", "drill", "gangway", "lamp", "pick", "pump", "seam", "shaft", "truck", "tunnel"),
          ("flood", "drain", "clear", "support", "inspect", "widen"),
          ("abandoned", "collapsed", "deep", "flooded", "profitable"), ("the pit", "the smelter", "the north shaft")),
    Topic("astronomy", ("astronomer", "lens grinder", "observer"),
          ("chart", "comet", "eclipse", "eyepiece", "meteor", "mirror", "orbit", "planet", "star", "telescope"),
          ("observ", "chart", "predict", "measur", "polish", "photograph"),
          ("bright", "distant", "faint", "nameless", "variable"),
          ("the observatory", "the dome", "the southern sky")),
    Topic("weaving", ("dyer", "spinner", "weaver"),
          ("apron", "blanket", "carpet", "cloak", "loom", "ribbon", "shuttle", "spindle", "tapestry panel", "thread"),
          ("mend", "dy", "unpick", "fold", "embroider", "stretch"),
          ("coarse", "embroidered", "faded", "scarlet", "woollen"), ("the workshop", "the dye house", "the market")),
    Topic("medicine", ("apothecary", "doctor", "nurse"),
          ("bandage", "cure", "fever", "herb", "hospital", "patient", "pill", "remedy book", "surgeon", "ward"),
          ("prescrib", "treat", "heal", "examin", "mix", "test"),
          ("bitter", "contagious", "effective", "fatal", "harmless"), ("the hospital", "the pharmacy", "the ward")),
    Topic("railways", ("conductor", "signalman", "stoker"),
          ("bridge", "carriage", "engine", "platform", "rail", "signal", "station", "ticket", "track", "train"),
          ("delay", "repair", "inspect", "shunt", "heat", "lengthen"),
          ("crowded", "electric", "late", "punctual", "rusty"), ("the station", "the depot", "the junction")),
    Topic("cooking", ("baker", "cook", "innkeeper"),
          ("bun", "cake", "dumpling", "kettle", "onion", "oven", "pan", "pie", "sausage", "stew"),
          ("roast", "boil", "season", "serv", "fri", "salt"),
          ("burnt", "delicious", "peppery", "stale", "tender"), ("the inn", "the kitchen", "the cellar")),
    Topic("theatre", ("actor", "director", "prompter"),
          ("comedy night", "costume", "curtain", "drama", "mask", "play", "scene", "script", "stage", "wig"),
          ("stag", "rehears", "applaud", "alter", "perform", "shorten"),
          ("gloomy", "hilarious", "popular", "scandalous", "unfinished"),
          ("the theatre", "the green room", "the gallery")),
    Topic("printing", ("bookbinder", "printer", "typesetter"),
          ("almanac", "book", "letter", "map", "newspaper", "page", "pamphlet", "plate", "poem", "woodcut"),
          ("print", "copi", "correct", "publish", "ink", "reprint"),
          ("banned", "illegible", "illustrated", "leather-bound", "rare"),
          ("the shop", "the library", "the archive")),
    Topic("gardening", ("botanist", "florist", "gardener"),
          ("bulb", "fountain", "hedge", "lawn", "orchid", "path", "rose", "seed", "shrub", "tulip"),
          ("plant", "water", "prun", "transplant", "graft", "weed"),
          ("blooming", "fragrant", "poisonous", "thorny", "withered"),
          ("the greenhouse", "the park", "the walled garden")),
)  # fmt: skip
