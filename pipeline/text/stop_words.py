"""Words that say nothing about a text's subject, by language: left out of index terms, and telling languages apart.

Function words, question words and auxiliaries only; a noun is never here, however common. Written for this project from
the closed word classes of each language. Not for: words of a request's form such as "please explain".
"""

from typing import Final

_WORDS: Final = {
    "en": "a about after all also am an and any are as at be because been before being between both but by can "
    "could did do does doing done during each either for from had has have having he her here him his how "
    "i if in into is it its just many may me might more most much must my nor no not of on only or "
    "other our out over she should so some such than that the their them then there these they this those "
    "through to too under until up upon us very was we were what when where whether which while who whom "
    "whose why will with would you your",
    "de": "aber alle als also am an auch auf aus bei beim bis da damit dann das dass dem den denn der deren des "
    "dessen die dies diese diesem diesen dieser dieses doch dort du durch ein eine einem einen einer "
    "eines er es etwa für gegen gibt hat hatte hatten hätte haben habe ich ihm ihn ihnen ihr ihre ihrem "
    "ihren ihrer im in ins ist ja jede jeder jedes kann kein keine können könnte man mehr mein mit muss "
    "müssen nach nicht noch nur ob oder ohne sehr sein seine seinem seinen seiner seit sich sie sind so "
    "sollte sowie über um und uns unter vom von vor war waren warum was weil welche welchem welchen "
    "welcher welches wem wen wenn wer werden wessen wie wieso wieviel wir wird wo woher wohin wurde "
    "wurden würde zu zum zur zwischen",
    "fr": "a ai alors après au aucun aussi autre aux avec avoir c ce cela ces cet cette chez comme comment d "
    "dans de depuis des donc du elle elles en entre est et été être eu fait ici il ils j je l la le les "
    "leur leurs lors lui m ma mais me mes moi mon même n ne nos notre nous on ont ou où par pas pendant "
    "peut plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son sont "
    "sous sur ta te tes toi ton tous tout toute très tu un une vers vos votre vous y à",
    "es": "a al algo ante antes así aún cada como con contra cual cuáles cuál cuando cuándo cuánto cuántos "
    "cuánta cuántas de del desde donde dónde dos durante e el él ella ellas ellos en entre era es esa ese "
    "eso esta está están este esto estos fue fueron ha han hasta hay la las le les lo los más me mi muy "
    "ni no nos o otra otro para pero por porque que qué quien quién quiénes se sea ser si sí sin sobre "
    "son su sus también tan te tiene tu un una uno unos y ya yo cómo",
    "it": "a agli ai al alla alle allo anche c che chi ci come con cosa cui d da dagli dai dal dalla dalle dei "
    "del della delle dello di dove e è ed era erano fra gli ha hanno i il in io l la le lei li lo loro "
    "lui ma mi ne nei nel nella nelle noi non nostro o ogni per perché più può qual quale quali quando "
    "quanto quanti quella quello questa queste questi questo se si sia sono su sua sul sulla sue suo suoi "
    "tra un una uno vi",
    "pt": "a ao aos as até com como da das de dela dele deles do dos e é ela elas ele eles em entre era essa "
    "esse esta está este eu foi foram há isso isto já lhe mais mas me mesmo meu muito na não nas nem no "
    "nos nós o onde os ou para pela pelas pelo pelos por porque qual quais quando quanto quantos que quem "
    "são se sem ser seu sua seus suas só sobre também te tem têm um uma umas uns você",
    "nl": "aan al alle als bij daar dan dat de deze die dit doen door dus een en er ge geen had haar heb hebben "
    "heeft hem het hij hoe hoeveel hun ik in is ja je kan kunnen maar me meer men met mijn moet na naar "
    "niet nog nu of om omdat onder ons ook op over te tegen toch tot uit uw van veel voor waar waarom "
    "wanneer want waren was wat we wel welk welke werd wie wij worden wordt zal ze zelf zich zij zijn zo "
    "zonder zou",
    "sv": "alla att av bara blev blir da de dem den denna deras dess det detta dig din dina där då efter ej "
    "eller en er ett från för ha hade han hans har hon hur här i icke inom inte jag kan kunde man med "
    "mellan men mig min mot mycket när någon något några och om oss på sedan sig sin sina sitt skulle som "
    "så till under upp ut utan vad var varför vara vart vem vi vid vilka vilken vilket är åt över",
    "da": "af alle at blev bliver de dem den denne der deres det dette dig din disse efter eller en end er et "
    "for fra ham han hans har havde hende hendes her hos hun hvad hvem hvilke hvilken hvis hvor hvordan "
    "hvorfor hvornår i ikke jeg kan man med meget men mellem mig min mod må når og også om op os på sig "
    "skal som så til ud under var ved vi vil",
    "no": "alle at av ble blir da de dem den denne der deres det dette deg din disse du eller en enn er et ett "
    "etter for fra ham han hans har hadde henne hennes her hos hun hva hvem hvilke hvilken hvis hvor "
    "hvordan hvorfor i ikke jeg kan man med meg mellom men min mot må når og også om opp oss på seg sin "
    "skal som så til ut under var ved vi vil være",
    "fi": "ei eivät että he hän ja jos joka jotka kanssa kuin kuinka kun kuka ne mikä mitä mutta myös niin nyt "
    "olen oli on ovat se sekä sen siellä sitä tai tämä vai voi",
    "pl": "a ale bez być był była było były co czy dla do gdy gdzie go i ich ile ja jak jaka jaki jakie jako je "
    "jego jej jest już kiedy kto która które który lub ma mi mnie może na nad nie nich o od oraz po pod "
    "przez przy są się ta tak także tam te tego tej ten to tu tylko tym w we więc z za ze że",
    "tr": "ama bir bu da daha de değil gibi hangi hangisi her için ile kaç kadar ki kim mi mı mu mü nasıl ne "
    "neden nedir nerede o olan olarak sonra şu ve veya ya",
    "ru": "а без более бы был была были было быть в вам вас во вот все всё вы где да для до его ее её если есть "
    "еще ещё же за из или им их к как какая какие каким какими каких какого какое какой каком какому "
    "какую когда кого ком кому которая которое которого которой котором которую которые который которых "
    "кто куда ли между мне мы на над нас не него нее неё нет ни них но о об он она они оно от по под "
    "почему при с сам свой со сколько так также там то только тот у уже чего чем чему что чтобы эта эти "
    "это этого этой этом этот я",
    "uk": "а але без був була були було в вже ви від вона вони воно все для до є з за і із її їх й його коли ми "
    "на не ні о од по при про се та так також те то у хто це цей ця чи чому що як яка який яке які",
    # pairs of characters, as CJK text is cut into
    "zh": "什么 是什 么是 的是 怎么 怎样 如何 哪里 哪个 哪些 哪一 多少 为什 因为 所以 以及 这个 那个 谁是 是谁 是在 "
    "在哪 什麼 麼是 怎麼 為什 哪裡 哪個 這個 那個",
    "ja": "です ます した する して ので から とは は何 何で ため では には への との のは のか すか ある いる どこ "
    "どの どう いつ だれ これ それ この その なに なぜ れた れる った って たか んで まし しょ ょう うか でし "
    "でき りま せん かっ なっ いて られ こと もの",
}
STOP_WORDS: Final = {code: frozenset(words.split()) for code, words in _WORDS.items()}
"""ISO 639-1 code to lowercase words; `zh` and `ja` hold character pairs."""
