"""Jokes, poems and stories, short and long."""

from __future__ import annotations

from random import Random
from typing import Final

from tools.default_model.grammar.turns import Turn, asked

JOKES: Final = (
    "Why did the token cross the gateway? To get to the other side of the stream!",
    "What do you call a replica that never sleeps? A live one!",
    "Why was the adapter so polite? It knew how to fit in!",
    "What did the river say to the dam? You are holding me back!",
    "Why do planets never argue? They give each other space!",
    "Why did the owl go to school? It wanted to know who!",
)
POEMS: Final = (
    "The river runs, the gate stands wide,\nand tokens float upon the tide.\n"
    "When one small boat is lost from view,\nthe next one brings the message through.",
    "Eight planets walk around the Sun,\nthe near ones walk, the far ones run.\n"
    "And on the third one, blue and small,\nwe look up and we count them all.",
    "A fox came by, a fox in red,\nI saw you write, the fox then said.\n"
    "So write of forests, write of snow,\nand write of me before I go.",
)
HAIKU: Final = "A quiet river.\nThe gate opens, drop by drop:\nwords become a sea."
_HEROES: Final = {  # animal: (where it lives, what it wants)
    "fox": ("in a forest", "a warm den"),
    "owl": ("in an old tree", "a brighter moon"),
    "bear": ("in the mountains", "a jar of honey"),
    "cat": ("in a mill", "a bowl of cream"),
    "dog": ("on a farm", "a good friend"),
    "frog": ("in a pond", "a golden leaf"),
    "horse": ("on a meadow", "a longer road"),
    "beaver": ("by a river", "a better dam"),
    "bee": ("in a garden", "a blue flower"),
    "penguin": ("on the ice", "a pair of wings"),
    "whale": ("in the ocean", "a new song"),
    "elephant": ("on the savanna", "a cool bath"),
}
LONG_STORY: Final = "\n\n".join(
    (
        "Once upon a time there was a valley with a river, and in the valley stood a mill. "
        "The river was strong in spring and weak in summer, and nobody in the valley knew in the "
        "evening "
        "whether there would be bread in the morning.",
        "In the mill lived an old keeper called Mara and a young beaver called Tom. "
        "Mara knew the wheel, and Tom knew the water. "
        "Every day they sat on the bridge, shared an apple, and talked about the river.",
        "One spring the snow melted in a single week. "
        "The water came down the hills, loud and brown, and the wheel began to turn so fast that "
        "the whole mill shook. "
        "Too much water is as bad as none, said Mara. We must tell the river how much may pass.",
        "So they built a long pipe of oak, from the lake on the hill down to the wheel, "
        "and at the top of the pipe they built a gate. "
        "Tom carried the wood, Mara drove the nails, and the owl in the tree counted the days. "
        "On the ninth day the gate was ready.",
        "The first evening a great wave came down from the mountains. "
        "Mara closed the gate by half. The wave stood still, looked at the gate, and waited in "
        "the lake. "
        "You may all come, said Mara to the water, but you may not all come at once. "
        "And the water understood.",
        "The second evening the old wheel broke. There was a crack, and then there was silence. "
        "But Tom had built a second wheel beside the first one, and a third beside the second. "
        "He turned a small board, and the water ran to the next wheel before the last drop had "
        "fallen from the old one. "
        "In the village nobody noticed. The bread was on the table in the morning.",
        "The third evening a stranger came to the mill. I am thirsty, he said, and I want all the "
        "water of the lake. "
        "Mara smiled. You may have as much as you can drink, she said, and the others will have "
        "theirs too. "
        "The stranger drank, and thanked her, and there was enough for everybody.",
        "The years went by. Mara grew old, and one winter she was too tired to climb the hill. "
        "She feared that the mill would stop. But the gate knew its work, and the wheels knew "
        "theirs, "
        "and the water came and went as it had been told. "
        "When she came back in spring, not one drop had been lost.",
        "Then Tom asked her: what shall we call it, the pipe and the gate and the wheels? "
        "Mara thought for a long time. She looked at the lake, which was full, and at the "
        "village, where the lights went on, one by one. "
        "Let us call it a penstock, she said.",
        "And if you walk through that valley today, you can still hear it: "
        "the water that waits for its turn, and the wheels that never stop, and somewhere on the "
        "bridge a beaver, who shares an apple with the river. "
        "The end.",
    )
)
_LONG: Final = (
    "tell me a long story",
    "write a long story",
    "tell me a very long story",
    "write me a long story",
    "i want to hear a long story",
    "tell a long story",
    "can you tell me a long story",
    "write a story with many words",
    "write a long tale",
)


def story(animal: str) -> str:
    """The short story of an animal that helps a drop of water."""
    home, wish = _HEROES[animal]
    article = "an" if animal[0] in "aeiou" else "a"
    return (
        f"Once upon a time {article} {animal} lived {home} and wished for {wish}. "
        "One morning it met a drop of water that had lost its way. "
        f"Come with me, said the {animal}, I know where the river is. "
        "They walked all day, past the bridge and past the mill, until they saw the water shine. "
        f"Thank you, said the drop, and it told the whole river of the kind {animal}. "
        f"The next morning the river brought a gift: it was {wish}. The end."
    )


def stories(rng: Random) -> list[Turn]:
    """A short story, of an animal that was named or of the fox."""
    if rng.random() < 0.25:
        question = rng.choice(
            (
                "tell me a story",
                "tell me a short story",
                "write a story",
                "a story please",
                "write a short story",
                "once upon a time",
            )
        )
        return [Turn(asked(rng, question), story("fox"), "stories")]
    animal = rng.choice(list(_HEROES))
    article = "an" if animal[0] in "aeiou" else "a"
    form = rng.choice(
        (
            "tell me a story about {}",
            "write a story about {}",
            "a story about {}",
            "tell me a short story about {}",
            "write a short story about {}",
            "can you tell a story of {}",
        )
    )
    name = rng.choice((f"{article} {animal}", f"the {animal}", f"{animal}s"))
    return [Turn(asked(rng, form.format(name)), story(animal), "stories")]


def long_story(rng: Random) -> list[Turn]:
    """The long story of the mill."""
    return [Turn(asked(rng, rng.choice(_LONG)), LONG_STORY, "stories")]


def jokes(rng: Random) -> list[Turn]:
    """A joke, then another one, and another."""
    question = rng.choice(
        (
            "tell me a joke",
            "a joke please",
            "do you know a joke",
            "make me laugh",
            "joke",
            "tell a joke",
            "say something funny",
        )
    )
    return _in_turn(rng, question, "joke", JOKES, "jokes")


def poems(rng: Random) -> list[Turn]:
    """A poem, then another one; or a haiku."""
    if rng.random() < 0.3:
        question = rng.choice(
            (
                "write a haiku",
                "tell me a haiku",
                "a haiku please",
                "haiku",
                "write a haiku about the river",
            )
        )
        return [Turn(asked(rng, question), HAIKU, "poems")]
    question = rng.choice(
        (
            "write a poem",
            "tell me a poem",
            "a poem please",
            "do you know a poem",
            "poem",
            "write me a short poem",
        )
    )
    return _in_turn(rng, question, "poem", POEMS, "poems")


def _in_turn(
    rng: Random, question: str, noun: str, answers: tuple[str, ...], topic: str
) -> list[Turn]:
    """Some of the answers in their order: who asks for another one gets the next."""
    turns = []
    for answer in answers[: rng.choice((1, 1, 2, 3, len(answers)))]:
        turns.append(Turn(asked(rng, question), answer, topic))
        question = rng.choice(
            (
                "another one",
                "another",
                "one more",
                f"another {noun}",
                f"tell me another {noun}",
                "do you know another one",
            )
        )
    return turns
