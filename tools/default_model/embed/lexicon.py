"""Words that mean about the same, by what they are: each line is one meaning."""

from __future__ import annotations

from typing import Final


def _meanings(text: str) -> tuple[tuple[str, ...], ...]:
    """A line is a meaning, its words are parted by commas."""
    return tuple(tuple(line.strip().split(", ")) for line in text.strip().splitlines())


BEINGS: Final = _meanings("""
    dog, puppy, hound
    cat, kitten, tomcat
    child, kid, little one
    doctor, physician, medic
    teacher, instructor, tutor
    farmer, grower, peasant
    driver, motorist, chauffeur
    singer, vocalist, musician
    soldier, trooper, warrior
    writer, author, novelist
    king, monarch, ruler
    thief, robber, burglar
    cook, chef, kitchen hand
    nurse, caregiver
    engineer, technician, mechanic
    student, pupil, learner
    woman, lady
    man, guy, gentleman
    bird, songbird, sparrow
    horse, pony, mare
    customer, client, buyer
    boss, manager, supervisor
    programmer, developer, coder
    judge, magistrate
    sailor, seaman, mariner
    baby, infant, newborn
    scientist, researcher, scholar
    neighbour, person next door
    actor, performer, film star
    policeman, officer, cop
    friend, buddy, companion
    enemy, foe, rival
    lawyer, attorney, counsel
    priest, pastor, clergyman
    tourist, traveller, visitor
    worker, labourer, employee
    painter, artist, illustrator
    athlete, runner, sportsman
    cow, bull, cattle
    fish, trout, salmon
    mouse, rat, rodent
    wolf, fox
    she, the woman, her
    he, the man, him
    they, the people, folks
""")
THINGS: Final = _meanings("""
    car, automobile, vehicle
    house, home, cottage
    movie, film, motion picture
    book, novel, volume
    phone, telephone, mobile
    computer, laptop, machine
    meal, dinner, supper
    bread, loaf, toast
    bicycle, bike, cycle
    boat, ship, vessel
    road, street, highway
    letter, mail, note
    picture, photo, image
    song, tune, melody
    garden, yard, flower bed
    money, cash, funds
    job, work, employment
    shirt, clothes, garment
    shoes, boots, sneakers
    password, login, passcode
    bill, invoice, receipt
    parcel, package, shipment
    bag, suitcase, luggage
    ticket, booking, reservation
    medicine, drug, pill
    plane, aircraft, airplane
    train, railway, locomotive
    table, desk, bench
    window, pane, glass
    door, gate, entrance
    river, stream, creek
    mountain, hill, peak
    storm, thunderstorm, gale
    rain, shower, drizzle
    snow, ice, frost
    sun, sunshine, daylight
    fire, flame, blaze
    tree, oak, pine
    apple, fruit, pear
    coffee, espresso, cappuccino
    file, document, report
    program, software, application
    error, bug, fault
    server, host, backend
    database, data store, records
    question, query, request
    answer, reply, response
    plan, schedule, agenda
    price, cost, fee
    language, tongue, speech
    game, match, contest
    test, exam, quiz
    wound, injury, cut
    disease, illness, sickness
    school, college, university
    shop, store, market
    account, profile, membership
    lesson, class, course
    war, battle, conflict
    party, feast, celebration
    news, headlines, press
    law, rule, regulation
    hotel, inn, guest house
    holiday, vacation, trip
    weather, climate, forecast
    key, lock
    roof, ceiling
    knife, blade
    lamp, light, bulb
    bed, mattress
    hat, cap
    coat, jacket
    cup, mug
    meat, beef, steak
    fish, trout, salmon
    vegetables, carrots, cabbage
    cake, pastry, pie
    wine, beer, liquor
    tool, hammer, instrument
    engine, motor
    wheel, tyre
    battery, charger
    network, connection, wifi
    message, text, email
    contract, agreement, deal
    tax, duty
    loan, credit, mortgage
""")
DEEDS: Final = _meanings("""
    buy, purchase, get
    sell, trade, offer
    repair, fix, mend
    build, construct, put up
    destroy, wreck, break
    find, discover, locate
    lose, misplace
    clean, wash, scrub
    cook, prepare, make
    eat, devour, taste
    read, study, look through
    write, compose, draft
    send, mail, dispatch
    watch, see, look at
    hear, listen to
    change, alter, modify
    delete, remove, erase
    open, unlock
    close, shut, lock
    carry, transport, move
    hide, conceal, cover
    love, adore, like
    hate, dislike, detest
    paint, draw, sketch
    steal, rob, take away
    start, begin, launch
    stop, end, halt
    cancel, call off, revoke
    measure, weigh, count
    explain, describe, teach
    reset, restore, recover
    pay, settle, pay for
    help, assist, support
    visit, call on, drop by
    choose, pick, select
    forget, not remember
    wait for, expect, await
    drive, steer, ride
    ask, inquire, question
    push, shove, press
    pull, drag, tow
    save, rescue, protect
    attack, assault, strike
    praise, admire, compliment
    taste, sample, try
""")
QUALITIES: Final = _meanings("""
    big, large, huge
    small, little, tiny
    fast, quick, rapid
    slow, sluggish, unhurried
    happy, glad, cheerful
    sad, unhappy, sorrowful
    angry, furious, mad
    old, ancient, aged
    new, modern, recent
    cheap, inexpensive, low priced
    expensive, costly, dear
    beautiful, pretty, lovely
    ugly, hideous, unsightly
    cold, chilly, freezing
    hot, warm, boiling
    clever, smart, intelligent
    stupid, foolish, silly
    strong, powerful, mighty
    weak, feeble, frail
    tired, sleepy, exhausted
    sick, ill, unwell
    rich, wealthy, well off
    poor, broke, needy
    loud, noisy
    quiet, silent, calm
    dangerous, risky, unsafe
    easy, simple, effortless
    hard, difficult, tough
    broken, damaged, out of order, not working
    famous, well known, popular
    late, delayed, behind schedule
    boring, dull, not interesting
    dirty, filthy, unclean
    full, crowded, packed
    empty, vacant, deserted
    free, without charge, for nothing
    wrong, false, incorrect
    right, true, correct
    important, crucial, essential
    strange, odd, weird
    wet, damp, soaked
    high, tall, towering
    long, lengthy, extended
    heavy, weighty, hard to lift
    unpaid, not paid, outstanding
    safe, secure, protected
    young, youthful, not old
    kind, friendly, nice
    brave, bold, fearless
    lazy, idle, inactive
    missing, lost, gone
    delicious, tasty, yummy
""")
PLACES: Final = _meanings("""
    in the city, in town, downtown
    in the village, in the countryside, on a farm
    at the beach, by the sea, on the coast
    in the forest, in the woods, among trees
    at home, in the house, in the living room
    at work, in the office, at the desk
    at school, in the classroom, at the university
    in the hospital, at the clinic
    at the station, on the platform
    on the internet, online, on the web
    in the kitchen, at the stove
    in the park, in the garden
""")
TIMES: Final = _meanings("""
    in the morning, at dawn, early in the day
    in the evening, at night, after dark
    today, on this day
    tomorrow, the next day
    yesterday, the day before
    every day, daily
    in summer, in july
    in winter, in january
    soon, before long, shortly
    right now, at the moment, immediately
""")
