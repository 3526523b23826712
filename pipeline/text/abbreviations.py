"""Words that end with a period without ending a sentence, and words that begin sentences.

Collected by hand from dictionaries' lists for English, German, French, Spanish and Russian; lower case, without the
last period, inner spaces removed. Not for: rules (`pipeline/text/sentences.py`).
"""

from typing import Final

_NEVER_FINAL: Final = (
    # titles and names
    "mr mrs ms mx dr prof rev hon gen col capt cmdr lt sgt maj adm gov sen rep pres supt messrs mme mlle mgr st mt ft "
    "fr sr sra srta dra lic ing arq hr hrn dipl med jur phil habil frl mag univ dir insp brig pvt cpl fig figs eq eqs "
    # references, numbers, measures that want something after them
    "no nos nr n° nº núm num vol vols pp p pg ch chap sec sect art arts para par ex ee ed eds trans cf viz vs v ca "
    "approx abb abs aufl bd bde bzgl ggf inkl exkl lfd max min mind sog tel vgl zzgl zz hrsg ebd evtl geb gest mio mrd "
    "str urspr verh kath ev wg ehem einschl allg bes jh dt engl frz lat österr "
    "tab taf tbl app resp incl excl ext est dept op ref refs "
    "párr párrf pág págs cap admón cra av avda ej dpto prov "
    "av boul éd env chap fasc hab "
    # dotted, with and without spaces
    "e.g i.e z.b d.h u.a o.ä u.ä i.d.r z.t z.z s.o s.u v.a m.e i.a a.d p.ex c.-à-d c.à.d p.ej s.a "
    "т.е т.к т.н т.ч и.о в.т.ч "
    # Russian
    "г гг ул им пр просп пер пл д стр рис табл гл ст п пп проф акад доц тов пос пгт обл р-н кв корп куб тыс млн млрд "
    "руб коп см ср напр англ нем фр лат греч рус ок род ред сост изд"
)
NEVER_FINAL: Final = frozenset(_NEVER_FINAL.split())
"""No boundary after these, whatever follows."""

_MAYBE_FINAL: Final = (
    "inc ltd co corp bros llc plc jr sr esq ph.d b.a m.a m.d b.sc m.sc phd etc al usw bzw usf u.s.w etw "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun "
    "ene abr ago dic lun mié jue vie sáb dom janv févr avr juil déc "
    "ave blvd rd hwy sq dist assn gmbh "
    "a.m p.m u.s u.k u.n e.u u.s.a d.c u.s.s.r ee.uu eeuu b.c a.d "
    "hs km kg cm mm mi lb lbs oz sec hr hrs "
    "т.д т.п др н.э долл дол в.и "
    "s.a s.l d o"
)
MAYBE_FINAL: Final = frozenset(_MAYBE_FINAL.split())
"""A boundary only before a word that commonly begins sentences."""

_STARTERS: Final = (
    # English
    "The A An This That These Those It Its He She They We You I His Her Their Our Your My There Here In On At By For "
    "From With After Before During Since While When Where Why How What Who Which If As But And Or So Because Although "
    "Though However Moreover Furthermore Nevertheless Therefore Thus Then Also Both Each Every Some Many Most Several "
    "Such No Not Only Once To Under Until Unlike Let Did Do Does Is Are Was Were Has Have Had Can Could Will Would "
    "Should All Another Despite According Today Now Meanwhile Please Next Yes "
    # German
    "Der Die Das Den Dem Des Ein Eine Einer Einem Eines Es Er Sie Wir Ihr Ich Dieser Diese Dieses Diesem Diesen Im "
    "Am Zum Zur Bei Mit Nach Von Vor Für Auf Aus Über Unter Durch Um Als Wenn Weil Wer Wie Wo Warum Aber Und Oder "
    "Auch Dabei Dann Danach Da Dort Hier Jedoch Heute Seit Während Zudem Sein Seine Ihre Man Nur So Nun Außerdem "
    # French
    "Le La Les Un Une Il Elle Ils Elles Nous Vous Je Ce Cette Ces Cet Dans Sur Sous Avec Pour Par Mais Et Ou Donc "
    "Car Selon Après Avant Depuis Pendant Lors En Au Aux Son Sa Ses Leur Leurs Comme Si Quand "
    # Spanish
    "El Los Las Una Unos Unas Ella Ellos Ellas Nosotros Yo Este Esta Estos Estas Ese Esa Eso Con Sin Por Para Pero "
    "Y O Según Después Antes Desde Durante Al Su Sus Cuando Donde Como Aunque También Se No "
    # Russian
    "В На С Со К Ко По Из От До За О Об У Он Она Оно Они Мы Вы Я Это Этот Эта Эти Его Её Ее Их Но И А Или Если Когда "
    "Где Как Что Кто После Перед При Для Также Однако Так Тем Затем Кроме"
)
STARTERS: Final = frozenset(_STARTERS.split())
"""Capitalised words that often begin a sentence and seldom continue a name."""

_LOWER_STARTERS: Final = "i im i'm i've he she it they we you the this these there my now thanks"
LOWER_STARTERS: Final = frozenset(_LOWER_STARTERS.split())
"""What begins a sentence in text without capitals: only where the stop follows a word and nothing closes with it."""

_ORDINAL_NOUNS: Final = (
    "januar jänner februar märz april mai juni juli august september oktober november dezember "
    "jahrhundert jahrhunderts jahrtausend auflage weltkrieg weltkriegs weltkrieges liga bundesliga platz rang "
    "stock etage klasse kapitel bezirk spieltag runde minute "
    "lebensjahr geburtstag jahrestag tag woche monat quartal halbjahr staffel folge "
    "armee division korps breitengrad jh"
)
ORDINAL_NOUNS: Final = frozenset(_ORDINAL_NOUNS.split())
"""German nouns after an ordinal number (`3. Oktober`), lower case."""

_ORDINAL_DETERMINERS: Final = (
    "am vom zum beim im der die das dem den des bis ab seit zur ein eine einen einem einer und jeder jede jedes"
)
ORDINAL_DETERMINERS: Final = frozenset(_ORDINAL_DETERMINERS.split())
"""German words before an ordinal number (`der 2. Satz`), lower case."""
