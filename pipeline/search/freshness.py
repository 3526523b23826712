"""Reading how recent an answer must be from the words of a request; it becomes a filter, never more words.

Models and people write "latest" where they mean "no old pages", and adding a year to the words narrows a search
wrongly (zero-index §3.1, time sensitivity). The other way round, a request with a date of its own needs no filter: the
date stays in the words and says it better. Not for: deciding whether to search (`pipeline/search/need.py`).
"""

import re
from datetime import date
from typing import Final

from pipeline.documents import Freshness

_DAY: Final = (
    r"today(?:'s)?|tonight|right now|this (?:morning|afternoon|evening)|breaking|live score|last 24 hours|past day|"
    r"heute|heutige[nrsm]?|gerade eben|aujourd['’]hui|ce soir|hoy|esta noche|oggi|stasera|hoje|vandaag|"
    r"idag|i dag|dzisiaj|сегодня|сейчас|сьогодні|bugün|اليوم"
)
_WEEK: Final = (
    r"this week(?:'s)?|this weekend|past (?:few days|week)|last (?:few days|7 days|week)|in the last days|"
    r"yesterday(?:'s)?|"
    r"latest news|recent news|news about|diese[nr]? woche|letzte[nr]? woche|gestern|neueste[n]? nachrichten|"
    r"cette semaine|hier soir|dernières nouvelles|la semaine dernière|esta semana|ayer|últimas noticias|la semana "
    r"pasada|"
    r"questa settimana|ieri|ultime notizie|notícias|ontem|deze week|gisteren|на этой неделе|вчера|последние новости|"
    r"bu hafta|هذا الأسبوع"
)
_MONTH: Final = (
    r"this month(?:'s)?|last month|past month|recently|(?<!most )recent|upcoming|diese[nrm]? monat|letzten monat|"
    r"kürzlich|neulich|"
    r"ce mois(?:-ci)?|récemment|récente?s?|este mes|recientemente|recientes?|questo mese|recentemente|este mês|"
    r"deze maand|onlangs|в этом месяце|недавно|bu ay"
)
_YEAR: Final = (
    r"this year(?:'s)?|latest|newest|current|currently|most recent|up[- ]to[- ]date|nowadays|as of now|so far|still|"
    r"dieses jahr(?:es)?|aktuell(?:e[nrsm]?)?|neueste[nrsm]?|derzeit(?:ige[nrsm]?)?|momentan|jüngste[nrsm]?|cette "
    r"année|"
    r"actuel(?:le)?s?|actuellement|derni(?:er|ère) version|este año|actual(?:mente|es)?|última versión|"
    r"quest['’]anno|attual[ei]|attualmente|ultima versione|este ano|atual(?:mente)?|dit jaar|huidige|nieuwste|"
    r"в этом году|последняя версия|текущ(?:ий|ая|ее)|нынешн(?:ий|яя|ее)|bu yıl|güncel"
)
# What changes by the hour or the day even when no word of time is there: the paper's "How's the weather?"
_DAILY: Final = (
    r"weather|forecast|temperature in|exchange rate|stock price|share price|bitcoin price|traffic in|air quality|"
    r"wetter|wettervorhersage|wechselkurs|aktienkurs|météo|cours de l['’]action|el tiempo en|tipo de cambio|"
    r"che tempo fa|погода|курс (?:доллара|евро)"
)
_NOT_TIME: Final = re.compile(
    r"\b(?:electric|alternating|direct|ocean|eddy) current|\bcurrent(?:s| density| flows?)\b|\bstill (?:image|life|"
    r"water)|"
    r"\b(?:what is|what's|define|meaning of) (?:weather|climate)\b|\bweather (?:station|balloon|map)",
    re.IGNORECASE,
)
_CJK: Final[tuple[tuple[Freshness, str], ...]] = (
    ("day", "今天|今日|今晚|现在的?天气|天气|天氣|今夜|現在の天気|天気|오늘|날씨|汇率|股价|為替レート|株価"),
    ("week", "本周|这周|這週|本週|昨天|最新消息|新闻|新聞|今週|昨日|ニュース|이번 주|어제|뉴스"),
    ("month", "本月|这个月|這個月|最近|近期|今月|最近の|先日|이번 달|최근"),
    ("year", "今年|最新|目前|当前|當前|现任|現任|現在|現行|올해|최신|현재"),
)
_WORDS: Final[tuple[tuple[Freshness, str], ...]] = (
    ("day", _DAY),
    ("week", _WEEK),
    ("month", _MONTH),
    ("day", _DAILY),
    ("year", _YEAR),
)
_LATIN: Final[tuple[tuple[Freshness, re.Pattern[str]], ...]] = tuple(
    (freshness, re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)) for freshness, words in _WORDS
)
_CJK_PATTERNS: Final = tuple((freshness, re.compile(words)) for freshness, words in _CJK)
_YEAR_NUMBER: Final = re.compile(r"(?<![\d.,/$€£-])(1[5-9]\d\d|20\d\d)(?![\d,]|\.\d|[-/]\d{3})(?=\b|s\b|年|년)?")
_FULL_DATE: Final = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b")


def years_of(text: str) -> tuple[int, ...]:
    """Return the years that stand in `text`, in order."""
    return tuple(dict.fromkeys(int(year) for year in _YEAR_NUMBER.findall(text)))


def freshness_of(text: str, *, today: date) -> Freshness:
    """Return how recent results must be: the narrowest period that the words of `text` name, else `any`.

    A request that carries a date needs no filter, with one exception: "latest" beside the running year means this year.
    """
    plain = _NOT_TIME.sub(" ", text)
    found: Freshness = next((fresh for fresh, words in (*_CJK_PATTERNS, *_LATIN) if words.search(plain)), "any")
    if found == "any":
        return "any"
    years = years_of(text)
    if (years and max(years) != today.year) or _FULL_DATE.search(text):
        return "any"
    return "year" if years and found in ("month", "year") else found
