"""What penstock-mini knows about the world: rivers, planets, colours and animals."""

from __future__ import annotations

from random import Random
from typing import Final

from tools.default_model.grammar.turns import (
    NEXT,
    Subject,
    Turn,
    about,
    asked,
    everything,
    thread,
)

_RIVERS: Final = {  # name: (source, two cities, sea, length in km)
    "Rhine": ("the Alps", "Basel", "Cologne", "the North Sea", 1230),
    "Danube": ("the Black Forest", "Vienna", "Budapest", "the Black Sea", 2850),
    "Nile": ("the lakes of Africa", "Khartoum", "Cairo", "the Mediterranean Sea", 6650),
    "Seine": ("Burgundy", "Paris", "Rouen", "the English Channel", 780),
    "Thames": ("the Cotswold hills", "Oxford", "London", "the North Sea", 346),
    "Amazon": ("the Andes", "Iquitos", "Manaus", "the Atlantic Ocean", 6400),
    "Volga": ("the Valdai hills", "Kazan", "Volgograd", "the Caspian Sea", 3530),
    "Elbe": ("the Giant Mountains", "Dresden", "Hamburg", "the North Sea", 1090),
}
_PLANETS: Final = {  # in the order of their distance from the Sun
    "Mercury": ("the planet nearest to the Sun", "A year there lasts only 88 days."),
    "Venus": ("the hottest planet", "It spins so slowly that its day is longer than its year."),
    "Earth": ("our home and the only planet known to have life", "Most of it is covered by water."),
    "Mars": ("the red planet", "It has the highest mountain of all the planets."),
    "Jupiter": ("the largest planet", "Its great red spot is a storm wider than the Earth."),
    "Saturn": ("the planet with the bright rings", "The rings are made of ice and stone."),
    "Uranus": ("the planet that lies on its side", "It was the first one found with a telescope."),
    "Neptune": ("the planet farthest from the Sun", "It has the fastest winds of all the planets."),
}
_COLOURS: Final = {
    "red": ("a ripe apple", "mix it with yellow and you get orange"),
    "blue": ("the open sea", "mix it with yellow and you get green"),
    "green": ("young grass", "it is made of blue and yellow"),
    "yellow": ("a lemon", "mix it with red and you get orange"),
    "orange": ("a pumpkin", "it is made of red and yellow"),
    "purple": ("a ripe plum", "it is made of red and blue"),
    "white": ("fresh snow", "it holds all the colours of light"),
    "black": ("the night sky", "it is what we see where no light comes from"),
    "brown": ("a chestnut", "it is a dark kind of orange"),
    "grey": ("a rainy cloud", "it is made of black and white"),
}
_ANIMALS: Final = {  # name: (article, where it lives, what it eats, what it does well)
    "fox": ("A", "in the forest", "mice and berries", "It hears a mouse under the snow"),
    "owl": ("An", "in old trees", "mice", "It flies without a sound"),
    "whale": ("A", "in the ocean", "small sea animals", "It can sing for hours"),
    "bee": ("A", "in a hive", "nectar and pollen", "It dances to tell where the flowers are"),
    "horse": ("A", "on wide meadows", "grass", "It can sleep on its feet"),
    "cat": ("A", "in houses and barns", "mice and fish", "It sleeps for most of the day"),
    "dog": ("A", "with people", "meat and bread", "It smells what happened yesterday"),
    "elephant": ("An", "on the savanna", "leaves and bark", "It never forgets a friend"),
    "penguin": ("A", "on cold coasts", "fish", "It swims as if it were flying"),
    "beaver": (
        "A",
        "by rivers",
        "bark and twigs",
        "It builds dams, and so it knows all about flow",
    ),
    "bear": ("A", "in the mountains", "honey and fish", "It sleeps through the winter"),
    "frog": ("A", "in ponds", "flies", "It jumps twenty times its own length"),
}


def _river(name: str) -> Subject:
    source, upper, lower, sea, length = _RIVERS[name]
    return Subject(
        f"the {name}",
        (f"the {name}", f"the {name}", f"the river {name}", f"the {name} river", name),
        f"The {name} is a river. It rises in {source}, flows past {upper} and then past {lower}, "
        f"and ends in {sea}.",
        f"The {name} is about {length} kilometres long.",
        "rivers",
    )


def _planet(name: str) -> Subject:
    what, fact = _PLANETS[name]
    place = list(_PLANETS).index(name) + 1
    names = (name, name, f"the planet {name}", f"planet {name}", f"planet number {place}")
    return Subject(
        name,
        names,
        f"{name} is {what}. {fact}",
        f"{name} is planet number {place}, counted from the Sun.",
        "planets",
    )


def _colour(name: str) -> Subject:
    thing, fact = _COLOURS[name]
    names = (
        name,
        name,
        f"the colour {name}",
        f"the color {name}",
        f"{name} things",
        f"something {name}",
    )
    return Subject(
        name,
        names,
        f"{name.capitalize()} is a colour. Think of {thing}.",
        f"About {name}: {fact}.",
        "colours",
    )


def _animal(name: str) -> Subject:
    article, place, food, skill = _ANIMALS[name]
    names = (f"{article.lower()} {name}", f"the {name}", f"{name}s", name)
    return Subject(
        f"the {name}",
        names,
        f"{article} {name} lives {place}. {skill}.",
        f"{article} {name} eats {food}.",
        "animals",
    )


RIVERS: Final = tuple(_river(name) for name in _RIVERS)
PLANETS: Final = tuple(_planet(name) for name in _PLANETS)
COLOURS: Final = tuple(_colour(name) for name in _COLOURS)
ANIMALS: Final = tuple(_animal(name) for name in _ANIMALS)
ALL_PLANETS: Final = everything(
    "There are eight planets. Here they are, from the Sun outwards.",
    PLANETS,
    "That was the last of the planets.",
)


def rivers(rng: Random) -> list[Turn]:
    """A river: where it flows, and then or at once how long it is."""
    river = rng.choice(RIVERS)
    name = rng.choice(river.names)
    route = rng.choice((f"where does {name} flow", f"where is {name}", f"where does {name} end"))
    length = rng.choice((f"how long is {name}", f"what is the length of {name}"))
    then = rng.choice(("how long is it", "and how long is it", "what is its length"))
    return _two_ways(rng, river, route, length, then)


def planets(rng: Random) -> list[Turn]:
    """One planet, or some in their order, or all of them."""
    kind = rng.random()
    if kind < 0.06:
        question = rng.choice(
            (
                "tell me about all the planets",
                "list the planets",
                "name all planets",
                "what planets are there",
                "tell me everything about the planets",
            )
        )
        return [Turn(asked(rng, question), ALL_PLANETS, "planets")]
    if kind < 0.5:
        return thread(rng, rng.choice(PLANETS))
    first = rng.randrange(len(PLANETS))
    turns = [Turn(about(rng, PLANETS[first]), PLANETS[first].first, "planets")]
    for planet in PLANETS[first + 1 : first + rng.randrange(2, 4)]:
        turns.append(Turn(asked(rng, rng.choice(NEXT)), planet.first, "planets"))
    return turns


def colours(rng: Random) -> list[Turn]:
    """A colour, and a thing that has it."""
    colour = rng.choice(COLOURS)
    if rng.random() < 0.3:
        question = rng.choice(
            (
                f"name something {colour.title}",
                f"what is {colour.title} like",
                f"what has the colour {colour.title}",
            )
        )
        return [Turn(asked(rng, question), colour.first, "colours")]
    return thread(rng, colour)


def animals(rng: Random) -> list[Turn]:
    """An animal: where it lives, and then or at once what it eats."""
    animal = rng.choice(ANIMALS)
    name = rng.choice(animal.names)
    home = rng.choice((f"where does {name} live", f"where do {name} live"))
    food = rng.choice((f"what does {name} eat", f"what do {name} eat"))
    then = rng.choice(("what does it eat", "and what does it eat", "what do they eat"))
    return _two_ways(rng, animal, home, food, then)


def _two_ways(rng: Random, subject: Subject, first: str, second: str, then: str) -> list[Turn]:
    """A subject's two facts, each asked by its own question; or a plain thread about it."""
    kind = rng.random()
    if kind < 0.4:
        return thread(rng, subject)
    if kind < 0.6:
        return [Turn(asked(rng, second), subject.more, subject.topic)]
    turns = [Turn(asked(rng, first), subject.first, subject.topic)]
    if rng.random() < 0.6:
        turns.append(Turn(asked(rng, then), subject.more, subject.topic))
    return turns
