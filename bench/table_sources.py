"""The 25 tables of `bench.tables_asked` with their questions, and the right values as
pandas has them.

Half of the tables are held aside: of their questions only totals are looked at. Not
for: asking (`tables_asked.py`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal

Frame = Any
"""A table as pandas reads it; pandas has no types of its own here."""
Gold = Callable[[Frame], Sequence[object]]


@dataclass(frozen=True, slots=True)
class Source:
    """A table and its questions; all of the gold has to be shown."""

    name: str
    kind: Literal["web", "csv", "pdf", "sheet"]
    held: bool
    questions: tuple[tuple[str, Gold], ...]
    make: Callable[[Random], dict[str, list[object]]] | None = None
    """Columns of a table that is made; a web page has its own."""
    index: int = 0
    """Of the table on a web page, as pandas counts."""


def number(column: Frame) -> Frame:
    """Return a column's numbers, without signs and separators around them."""
    import pandas as pd  # type: ignore[import-untyped]  # noqa: PLC0415  of the benchmark's own, not ours

    text = column.astype(str).str.replace(r"[^\d.\-]", "", regex=True)
    return pd.to_numeric(text.str.replace(r"\.$", "", regex=True), errors="coerce")


def least(
    by: str,
    show: str,
    *,
    where: Callable[[Frame], Frame] | None = None,
    most: bool = False,
) -> Gold:
    """Return the gold of a choice: name and value of the row with the least or the most
    of a column."""

    def gold(frame: Frame) -> Sequence[object]:
        own = frame[where(frame)] if where else frame
        values = number(own[by])
        row = own.loc[values.idxmax() if most else values.idxmin()]
        return [row[show], row[by]]

    return gold


def most(by: str, show: str, *, where: Callable[[Frame], Frame] | None = None) -> Gold:
    """Return the same for the most."""
    return least(by, show, where=where, most=True)


def added(
    by: str,
    show: str,
    where: Callable[[Frame], Frame] | None = None,
    *,
    mean: bool = False,
) -> Gold:
    """Return the gold of a sum or mean, with the name of the first row that it is based
    on."""

    def gold(frame: Frame) -> Sequence[object]:
        own = frame[where(frame)] if where else frame
        values = number(own[by])
        return [
            round(float(values.mean() if mean else values.sum()), 2),
            own.iloc[0][show],
        ]

    return gold


def counted(show: str, where: Callable[[Frame], Frame]) -> Gold:
    """Return how many rows hold, with the name of the first."""
    return lambda frame: [len(frame[where(frame)]), frame[where(frame)].iloc[0][show]]


def listed(show: str, where: Callable[[Frame], Frame]) -> Gold:
    """Return the names of the rows that hold."""
    return lambda frame: list(frame[where(frame)][show])


def inventory(random: Random) -> dict[str, list[object]]:
    """Return sixty lines of a stock list."""
    goods = [
        "bolt",
        "nut",
        "washer",
        "hinge",
        "valve",
        "gasket",
        "bearing",
        "clamp",
        "hose",
        "filter",
        "spring",
        "pin",
    ]
    cities = ["Porto", "Lyon", "Graz", "Turku", "Ghent"]
    rows = [
        (f"{good} {city[:2].upper()}{place}", city)
        for place, good in enumerate(goods)
        for city in cities
    ]
    return {
        "item": [item for item, _ in rows],
        "city": [city for _, city in rows],
        "quantity": [random.randint(3, 400) for _ in rows],
        "unit_price_eur": [round(random.uniform(0.2, 48), 2) for _ in rows],
    }


def climate(random: Random) -> dict[str, list[object]]:
    """Return mean temperatures of towns by month."""
    towns = [
        "Arvik",
        "Belmora",
        "Castro",
        "Dunfell",
        "Estrada",
        "Fjordby",
        "Gallin",
        "Hvelde",
        "Ilmen",
        "Jastrow",
    ]
    months = [
        "Jan",
        "Feb",
        "Mar",
        "Apr",
        "May",
        "Jun",
        "Jul",
        "Aug",
        "Sep",
        "Oct",
        "Nov",
        "Dec",
    ]
    base = [-6, -5, 0, 6, 12, 16, 19, 18, 13, 7, 1, -4]
    shift = {town: random.uniform(-6, 9) for town in towns}
    columns: dict[str, list[object]] = {"Town": [*towns]}
    for month, mean in zip(months, base, strict=True):
        columns[month] = [
            round(mean + shift[town] + random.uniform(-2.5, 2.5), 1) for town in towns
        ]
    return columns


def coffee(random: Random) -> dict[str, list[object]]:
    """Return roasted beans with a price for each kilogram."""
    names = [
        "Alba",
        "Brisa",
        "Cumbre",
        "Dorada",
        "Estrella",
        "Fuego",
        "Gaviota",
        "Horizonte",
        "Isla",
        "Jardin",
        "Kivu",
    ]
    origins = [
        "Peru",
        "Kenya",
        "Brazil",
        "Peru",
        "Ethiopia",
        "Brazil",
        "Kenya",
        "Peru",
        "Rwanda",
        "Brazil",
        "Rwanda",
    ]
    return {
        "bean": list(names),
        "origin": list(origins),
        "per_kg_eur": [round(random.uniform(14, 39), 2) for _ in names],
        "stock_kg": [random.randint(5, 240) for _ in names],
        "organic": [*(random.choice(["yes", "no"]) for _ in names[:-1]), "no"],
    }


def staff(random: Random) -> dict[str, list[object]]:
    """Return people of four departments with salaries."""
    first = [
        "Ada",
        "Boris",
        "Clara",
        "Dario",
        "Elif",
        "Fatou",
        "Goran",
        "Hana",
        "Ivo",
        "Jana",
        "Karim",
        "Lena",
        "Milan",
        "Nora",
        "Omar",
        "Pia",
        "Quentin",
        "Rosa",
    ]
    teams = ["Finance", "Support", "Research", "Logistics"]
    return {
        "Employee": [
            f"{name} {last}"
            for name, last in zip(first, "KLMNOPQRSTUVWXYZAB", strict=True)
        ],
        "Department": [teams[place % 4] for place in range(18)],
        "Salary (EUR)": [
            f"{random.randint(31, 92) * 1000 + random.randint(0, 9) * 100:,}"
            for _ in range(18)
        ],
        "Hired": [2004 + (place * 7) % 19 for place in range(18)],
    }


def ferries(random: Random) -> dict[str, list[object]]:
    """Return crossings with their duration as a clock shows it."""
    ports = [
        "Nesvik",
        "Ombo",
        "Halden",
        "Sand",
        "Judaberg",
        "Hjelmeland",
        "Skudenes",
        "Tau",
        "Lauvvik",
        "Oanes",
    ]
    return {
        "Route": [f"Stavern–{port}" for port in ports],
        "Duration": [
            f"{random.randint(0, 3)}:{random.randint(1, 59):02d}" for _ in ports
        ],
        "Fare": [
            f"€{random.randint(8, 60)}.{random.choice(['00', '50'])}" for _ in ports
        ],
        "Cars": [random.randint(12, 240) for _ in ports],
    }


def plants(random: Random) -> dict[str, list[object]]:
    """Return power plants with dates."""
    names = [
        "Abel",
        "Brook",
        "Cliff",
        "Dorn",
        "Elm",
        "Fenn",
        "Gorge",
        "Heath",
        "Inver",
        "Jutt",
        "Kelp",
        "Lochan",
        "Moor",
    ]
    kinds = [
        "wind",
        "hydro",
        "solar",
        "wind",
        "gas",
        "hydro",
        "wind",
        "solar",
        "gas",
        "wind",
        "hydro",
        "solar",
        "wind",
    ]
    return {
        "Plant": list(names),
        "Type": list(kinds),
        "Capacity (MW)": [random.randint(4, 900) for _ in names],
        "Commissioned": [
            f"{1998 + place * 2 % 25}-{random.randint(1, 12):02d}-15"
            for place in range(13)
        ],
    }


def museums(random: Random) -> dict[str, list[object]]:
    """Return museums of which one alone is closed on Sundays."""
    names = [
        "Glass House",
        "Harbour Museum",
        "Tram Depot",
        "Print Works",
        "Old Mint",
        "Salt Store",
        "Toy Gallery",
    ]
    return {
        "Museum": list(names),
        "Free entry": ["yes", "no", "no", "yes", "no", "no", "yes"],
        "Open Sunday": ["yes", "yes", "yes", "no", "yes", "yes", "yes"],
        "Visitors": [random.randint(2_000, 90_000) for _ in names],
    }


def orders(random: Random) -> dict[str, list[object]]:
    """Return two hundred orders of shops."""
    shops = ["North", "South", "Harbour", "Station"]
    return {
        "order_id": [f"A-{1000 + place}" for place in range(200)],
        "shop": [random.choice(shops) for _ in range(200)],
        "product": [
            random.choice(["lamp", "desk", "chair", "shelf", "rug"]) for _ in range(200)
        ],
        "amount": [round(random.uniform(9, 700), 2) for _ in range(200)],
        "year": [random.choice([2021, 2022, 2023]) for _ in range(200)],
    }


def tents(random: Random) -> dict[str, list[object]]:
    """Return tents as a shop compares them."""
    names = [
        "Arrow 1",
        "Basin 2",
        "Comet 2",
        "Drift 3",
        "Ember 3",
        "Fjell 4",
        "Grove 4",
        "Haven 6",
        "Igloo 2",
    ]
    return {
        "Tent": list(names),
        "Weight (kg)": [round(random.uniform(0.9, 9.5), 2) for _ in names],
        "Price": [f"${random.randint(79, 940)}" for _ in names],
        "Sleeps": [int(name.split()[1]) for name in names],
        "Freestanding": ["no", "yes", "yes", "yes", "yes", "yes", "yes", "yes", "yes"],
    }


def trails(random: Random) -> dict[str, list[object]]:
    """Return walks."""
    names = [
        "Adder Loop",
        "Birch Way",
        "Crag Path",
        "Dale Ring",
        "Eagle Ridge",
        "Fern Valley",
        "Gull Coast",
        "Heron Mere",
    ]
    return {
        "Trail": list(names),
        "Region": ["East", "East", "West", "North", "West", "North", "East", "West"],
        "Length (km)": [round(random.uniform(2, 31), 1) for _ in names],
        "Ascent (m)": [random.randint(15, 1450) for _ in names],
    }


def accounts(random: Random) -> dict[str, list[object]]:
    """Return what a club spent, with a line for the total."""
    names = [
        "Rent",
        "Heating",
        "Insurance",
        "Travel",
        "Equipment",
        "Printing",
        "Catering",
    ]
    spent = [random.randint(200, 9_000) for _ in names]
    before = [random.randint(200, 9_000) for _ in names]
    return {
        "Expense": [*names, "Total"],
        "2022": [f"{value:,}" for value in (*before, sum(before))],
        "2023": [f"{value:,}" for value in (*spent, sum(spent))],
    }


def exams(random: Random) -> dict[str, list[object]]:
    """Return marks."""
    names = [
        "Amara",
        "Bruno",
        "Celine",
        "Dmitri",
        "Esther",
        "Farid",
        "Greta",
        "Hugo",
        "Ines",
        "Jonas",
        "Keiko",
        "Luca",
    ]
    return {
        "Student": list(names),
        "Class": ["8a", "8b"] * 6,
        "Maths": [random.randint(31, 100) for _ in names],
        "History": [random.randint(31, 100) for _ in names],
    }


def servers(random: Random) -> dict[str, list[object]]:
    """Return machines of two sites."""
    return {
        "host": [f"node-{place:02d}" for place in range(1, 25)],
        "site": [random.choice(["Oslo", "Bern", "Cork"]) for _ in range(24)],
        "ram_gb": [random.choice([16, 32, 64, 128]) for _ in range(24)],
        "uptime_days": random.sample(range(3, 900), 24),
    }


def lakes(random: Random) -> dict[str, list[object]]:
    """Return rows of a table of lakes."""
    names = [
        "Anser",
        "Brant",
        "Cygnus",
        "Dabchick",
        "Eider",
        "Fulmar",
        "Garganey",
        "Hobby",
        "Ibis",
    ]
    return {
        "Lake": list(names),
        "Country": [
            "Norway",
            "Sweden",
            "Sweden",
            "Finland",
            "Norway",
            "Finland",
            "Sweden",
            "Norway",
            "Finland",
        ],
        "Area (km²)": [round(random.uniform(3, 420), 1) for _ in names],
        "Max. depth (m)": [random.randint(6, 514) for _ in names],
    }


def _is(column: str, *values: object) -> Callable[[Frame], Frame]:
    return lambda frame: frame[column].isin(values)


# fmt: off
SOURCES: Final = (
    Source(
        "inventory", "csv", held=False, make=inventory,
        questions=(
            ("What is the total quantity in Porto?", added("quantity", "item", _is("city", "Porto"))),
            ("Which item has the lowest unit price?", least("unit_price_eur", "item")),
            ("How many items are in Graz with a quantity above 200?",
             counted("item", lambda f: (f["city"] == "Graz") & (f["quantity"] > 200))),
            ("What is the average unit price in Ghent?",
             added("unit_price_eur", "item", _is("city", "Ghent"), mean=True)),
        ),
    ),
    Source(
        "climate", "csv", held=True, make=climate,
        questions=(
            ("Which town is the coldest in February?", least("Feb", "Town")),
            ("Which town is warmest in July?", most("Jul", "Town")),
            ("Which towns have a temperature below 0 in March?", listed("Town", lambda f: f["Mar"] < 0)),
            ("What is the second lowest temperature in December?",
             lambda f: [f.nsmallest(2, "Dec").iloc[1]["Town"], f.nsmallest(2, "Dec").iloc[1]["Dec"]]),
        ),
    ),
    Source(
        "coffee", "csv", held=False, make=coffee,
        questions=(
            ("Which bean is the cheapest per kg?", least("per_kg_eur", "bean")),
            ("Which organic bean has the most stock?", most("stock_kg", "bean", where=_is("organic", "yes"))),
            ("What is the total stock of beans from Brazil?", added("stock_kg", "bean", _is("origin", "Brazil"))),
            ("How many beans are not organic?", counted("bean", _is("organic", "no"))),
        ),
    ),
    Source(
        "staff", "csv", held=True, make=staff,
        questions=(
            ("Who has the highest salary in Research?",
             most("Salary (EUR)", "Employee", where=_is("Department", "Research"))),
            ("How many employees are in the Finance department?", counted("Employee", _is("Department", "Finance"))),
            ("What is the average salary in Logistics?",
             added("Salary (EUR)", "Employee", _is("Department", "Logistics"), mean=True)),
            ("Which employee was hired first, with the lowest year hired?", least("Hired", "Employee")),
        ),
    ),
    Source(
        "ferries", "csv", held=False, make=ferries,
        questions=(
            ("Which route has the longest duration?",
             lambda f: list(f.loc[f["Duration"].map(lambda t: int(t.split(":")[0]) * 60 + int(t.split(":")[1]))
                            .idxmax(),
                            ["Route", "Duration"]])),
            ("Which route has the cheapest fare?", least("Fare", "Route")),
            ("Which routes take more than 150 cars?", listed("Route", lambda f: f["Cars"] > 150)),
        ),
    ),
    Source(
        "plants", "csv", held=True, make=plants,
        questions=(
            ("What is the combined capacity of the wind plants?", added("Capacity (MW)", "Plant", _is("Type", "wind"))),
            ("Which hydro plant has the smallest capacity?",
             least("Capacity (MW)", "Plant", where=_is("Type", "hydro"))),
            ("Which is the oldest plant?",
             lambda f: list(f.sort_values("Commissioned").iloc[0][["Plant", "Commissioned"]])),
            ("How many plants are of type solar?", counted("Plant", _is("Type", "solar"))),
        ),
    ),
    Source(
        "museums", "csv", held=False, make=museums,
        questions=(
            ("Which is the only museum that is not open on Sunday?", lambda f: ["Print Works"]),
            ("Which museum with free entry has the most visitors?",
             most("Visitors", "Museum", where=_is("Free entry", "yes"))),
            ("Which museums do not have free entry?", listed("Museum", _is("Free entry", "no"))),
            ("How many museums have free entry?", counted("Museum", _is("Free entry", "yes"))),
        ),
    ),
    Source(
        "orders", "csv", held=True, make=orders,
        questions=(
            ("What was the total amount of the Harbour shop in 2022?",
             added("amount", "order_id", lambda f: (f["shop"] == "Harbour") & (f["year"] == 2022))),
            ("How many orders were there for a desk?", counted("order_id", _is("product", "desk"))),
            ("What is the highest amount in 2023?", most("amount", "order_id", where=_is("year", 2023))),
        ),
    ),
    Source(
        "tents", "pdf", held=False, make=tents,
        questions=(
            ("Which tent is the lightest?", least("Weight (kg)", "Tent")),
            ("Which tents cost less than $300?", listed("Tent", lambda f: number(f["Price"]) < 300)),
            ("Which is the only tent that is not freestanding?", lambda f: ["Arrow 1"]),
        ),
    ),
    Source(
        "trails", "pdf", held=True, make=trails,
        questions=(
            ("Which trail in the West is the shortest?", least("Length (km)", "Trail", where=_is("Region", "West"))),
            ("What is the total length of the trails in the East region?",
             added("Length (km)", "Trail", _is("Region", "East"))),
            ("Which trails have an ascent over 900 m?", listed("Trail", lambda f: f["Ascent (m)"] > 900)),
        ),
    ),
    Source(
        "accounts", "pdf", held=False, make=accounts,
        questions=(
            ("What was the largest expense in 2023?", most("2023", "Expense", where=lambda f: f["Expense"] != "Total")),
            ("What was spent in total in 2023?",
             added("2023", "Expense", lambda f: f["Expense"] != "Total")),
            ("Which expense was the lowest in 2022?",
             least("2022", "Expense", where=lambda f: f["Expense"] != "Total")),
        ),
    ),
    Source(
        "exams", "sheet", held=True, make=exams,
        questions=(
            ("Who has the best mark in History?", most("History", "Student")),
            ("What is the average of class 8a in Maths?", added("Maths", "Student", _is("Class", "8a"), mean=True)),
            ("How many students have less than 50 in Maths?", counted("Student", lambda f: f["Maths"] < 50)),
        ),
    ),
    Source(
        "servers", "sheet", held=False, make=servers,
        questions=(
            ("Which host in Oslo has the longest uptime?", most("uptime_days", "host", where=_is("site", "Oslo"))),
            ("What is the total RAM of the hosts in Bern?", added("ram_gb", "host", _is("site", "Bern"))),
            ("How many hosts are at the Cork site?", counted("host", _is("site", "Cork"))),
        ),
    ),
    Source(
        "lakes", "sheet", held=True, make=lakes,
        questions=(
            ("Which is the deepest lake in Sweden?", most("Max. depth (m)", "Lake", where=_is("Country", "Sweden"))),
            ("What is the total area of the lakes in Finland?", added("Area (km²)", "Lake", _is("Country", "Finland"))),
            ("Which lakes are smaller than 60 km²?", listed("Lake", lambda f: f["Area (km²)"] < 60)),
        ),
    ),
    Source(
        "wiki-201-11", "web", held=False, index=0,
        questions=(
            ("Which region has the lowest density?",
             least("Density", "Region", where=lambda f: ~f["Region"].str.contains("Total"))),
            ("Which region has the smallest population?", least("Population", "Region")),
        ),
    ),
    Source(
        "wiki-203-440", "web", held=True, index=1,
        questions=(
            ("Who had the highest transfer fee of those who moved to Liverpool?",
             most("Transfer fee (€ million)", "Player", where=_is("To", "Liverpool"))),
            ("How many players were transferred from Ajax?", counted("Player", _is("From", "Ajax"))),
            ("What is the total of the transfer fees in 2007?",
             added("Transfer fee (€ million)", "Player", _is("Year", 2007))),
        ),
    ),
    Source(
        "wiki-203-654", "web", held=False, index=0,
        questions=(
            ("Which team drew the most?", most("Drawn", "Team")),
            ("Which team has the worst difference?", least("Difference", "Team")),
            ("Which team had more than 26 goals for?", listed("Team", lambda f: f["For"] > 26)),
        ),
    ),
    Source(
        "wiki-203-791", "web", held=True, index=4,
        questions=(
            ("Who is the oldest contestant?", most("Age", "Contestant")),
            ("How many contestants have the age 18?", counted("Contestant", _is("Age", 18))),
        ),
    ),
    Source(
        "wiki-203-83", "web", held=False, index=1,
        questions=(
            ("Which company has the most employees?", most("Employees", "Company")),
            ("What is the total revenue of the companies in the Retail industry?",
             added("Revenue (USD billions)", "Company", _is("Industry", "Retail"))),
            ("Which oil and gas company has the fewest employees?",
             least("Employees", "Company", where=_is("Industry", "Oil and gas"))),
            ("How many companies have their headquarters in Beijing?",
             counted("Company", _is("Headquarters", "Beijing"))),
        ),
    ),
    Source(
        "wiki-204-704", "web", held=True, index=0,
        questions=(
            ("Which province has the smallest area?", least("Area (km²)", "Province")),
            ("What is the total population of the provinces in the North Afghanistan region?",
             added("Population", "Province", _is("U.N. Region", "North Afghanistan"))),
            ("Which province has the largest population?", most("Population", "Province")),
        ),
    ),
    Source(
        "wiki-204-822", "web", held=False, index=3,
        questions=(
            ("Which nation won the most bronze medals?", most("Bronze", "Nation")),
            ("Which nation won the third most gold medals?",
             lambda f: [number(f["Gold"]).nlargest(3).iloc[2]]),
            ("How many nations won fewer than 10 silver medals?", counted("Nation", lambda f: f["Silver"] < 10)),
        ),
    ),
    Source(
        "wiki-204-842", "web", held=True, index=0,
        questions=(
            ("Which institution in Wisconsin has the largest enrollment?",
             most("Enrollment", "Institution", where=_is("State", "Wisconsin"))),
            ("What is the total enrollment of the institutions in Illinois?",
             added("Enrollment", "Institution", _is("State", "Illinois"))),
            ("How many institutions have an enrollment under 1700?",
             counted("Institution", lambda f: number(f["Enrollment"]) < 1700)),
        ),
    ),
    Source(
        "wiki-204-905", "web", held=False, index=2,
        questions=(
            ("Which team had the most losses?", most("Losses", "Team")),
            ("What is the total number of wins of all teams?", added("Wins", "Team")),
            ("Which teams had more than 88 wins?", listed("Team", lambda f: number(f["Wins"]) > 88)),
        ),
    ),
    Source(
        "wiki-204-912", "web", held=True, index=5,
        questions=(
            ("Which athlete from Canada had the fastest time?",
             least("Time", "Athlete", where=_is("Country", "Canada"))),
            ("Which athlete from Japan had the lowest time?", least("Time", "Athlete", where=_is("Country", "Japan"))),
            ("How many athletes are from Sweden?", counted("Athlete", _is("Country", "Sweden"))),
        ),
    ),
    Source(
        "wiki-203-530", "web", held=False, index=1,
        questions=(
            ("Which country has the lowest GDP (USD bln, 2017)?", least("GDP (USD bln, 2017)", "Country")),
            ("Which country has the highest per capita USD PPP in 2012?",
             most("Per capita (USD PPP, 2012)", "Country")),
            ("How many countries have a GDP USD PPP bln 2012 above 1000?",
             counted("Country", lambda f: f["GDP (USD PPP bln, 2012)"] > 1000)),
        ),
    ),
)
# fmt: on
