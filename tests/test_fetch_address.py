"""The guard: no spelling of a private address gets through, by form or by resolution."""

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from errors import AddressRefused, SourceError
from pipeline.fetch.address import BLOCKED_PORTS, check_url, checked_addresses, refusal, translated
from pipeline.fetch.limits import FetchLimits
from server.settings import NAT64_LENGTHS

LIMITS = FetchLimits()
PRIVATE = [
    *(
        "127.0.0.0/8",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "169.254.0.0/16",
        "100.64.0.0/10",
        "0.0.0.0/8",
    ),
    *("224.0.0.0/4", "240.0.0.0/4", "198.18.0.0/15", "192.0.2.0/24", "192.0.0.0/24"),
]
PUBLIC = [
    "8.8.8.8",
    "93.184.216.34",
    "1.1.1.1",
    "172.15.255.255",
    "172.32.0.0",
    "100.63.255.255",
    "100.128.0.0",
]

private_ipv4 = st.sampled_from(PRIVATE).flatmap(
    lambda network: st.integers(0, ip_network(network).num_addresses - 1).map(
        lambda place: IPv4Address(int(ip_network(network).network_address) + place)
    )
)


def spellings(address: IPv4Address) -> list[str]:
    """Return the hosts that some resolver or URL parser reads as `address`."""
    a, b, c, d = address.packed
    number = int(address)
    high, low = number >> 16, number & 0xFFFF
    wide = str(address).translate({ord(str(n)): 0xFF10 + n for n in range(10)})
    return [
        str(address),
        f"{address}.",
        str(number),
        hex(number),
        f"0{number:o}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"{a}.{(b << 16) | (c << 8) | d}",
        f"{a}.{b}.{(c << 8) | d}",
        f"0x{a:x}.{b}.{c}.0{d:o}",
        f"00000{a}.{b}.{c}.{d}",
        wide,
        str(address).replace(".", "。"),
        str(address).replace(".", "%2e"),
        f"[::ffff:{address}]",
        f"[::ffff:{high:x}:{low:x}]",
        f"[::ffff:0:{high:x}:{low:x}]",
        f"[::{high:x}:{low:x}]",
        f"[0:0:0:0:0:ffff:{high:x}:{low:x}]",
        f"[64:ff9b::{high:x}:{low:x}]",
        f"[64:ff9b:1::{high:x}:{low:x}]",
        f"[2002:{high:x}:{low:x}::]",
        f"[2001:0:{high:x}:{low:x}::]",
        f"example.com@{address}",
        f"example.com:80@{address}",
        f"{address}\\@example.com",
        f"{address}%00.example.com",
    ]


@given(private_ipv4)
def test_no_spelling_of_a_private_address_gets_through(address: IPv4Address) -> None:
    for host in spellings(address):
        for scheme in ("http", "https"):
            with pytest.raises(AddressRefused):
                check_url(f"{scheme}://{host}/", LIMITS)


@given(private_ipv4)
def test_no_name_that_resolves_to_a_private_address_gets_through(address: IPv4Address) -> None:
    number = int(address)
    forms = [
        str(address),
        f"::ffff:{address}",
        str(IPv6Address(number)),
        str(IPv6Address((0x64FF9B << 96) | number)),
        str(IPv6Address((0x2002 << 112) | (number << 80))),
    ]
    for form in forms:

        async def resolve(_host: str, _port: int, form: str = form) -> list[str]:
            return ["8.8.8.8", form]

        with pytest.raises(AddressRefused):
            anyio.run(checked_addresses, "name.example", 80, LIMITS, resolve)


@given(st.text(alphabet="0123456789abcdefxX.", min_size=1, max_size=24))
def test_what_the_system_reads_as_a_number_is_judged_as_that_number_or_refused(host: str) -> None:
    """`inet_aton` is what resolvers fall back to: decimal, octal, hex, short forms."""
    try:
        meant = IPv4Address(socket.inet_aton(host))
    except OSError:
        return
    try:
        target = check_url(f"http://{host}/", LIMITS)
    except AddressRefused:
        return
    assert target.host.rstrip(".") == str(meant)
    assert refusal(meant, LIMITS) == ""


@given(
    st.text(max_size=60),
    st.sampled_from(["http://{}/", "http://a@{}/", "http://[{}]/", "http://{}:80/", "http:{}"]),
)
def test_any_text_as_a_host_is_refused_in_words_or_kept_in_ascii(text: str, form: str) -> None:
    try:
        target = check_url(form.format(text), LIMITS)
    except AddressRefused:
        return
    assert target.host.isascii()
    assert "@" not in target.url.netloc.decode()


@given(private_ipv4, st.sampled_from(sorted(NAT64_LENGTHS)))
def test_behind_a_translator_the_address_that_it_reads_decides(
    address: IPv4Address, length: int
) -> None:
    prefix = IPv6Network(
        (int(IPv6Address("2001:db8:122:344::")) >> (128 - length) << (128 - length), length)
    )
    opened = FetchLimits(nat64=(prefix,))
    assert refusal(carried(address, prefix), opened) != ""
    assert refusal(carried(IPv4Address("93.184.216.34"), prefix), opened) == ""
    assert translated(carried(address, prefix), prefix) == address


def carried(address: IPv4Address, prefix: IPv6Network) -> IPv6Address:
    """Write `address` after `prefix` as the figure in RFC 6052 §2.2 draws it, octet 8 left
    zero."""
    octets = list(prefix.network_address.packed)
    free = [place for place in range(prefix.prefixlen // 8, 16) if place != 8]
    for place, octet in zip(free, address.packed, strict=False):
        octets[place] = octet
    return IPv6Address(bytes(octets))


@pytest.mark.parametrize(
    ("prefix", "written"),
    [
        ("2001:db8::/32", "2001:db8:c000:221::"),
        ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
        ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
        ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100:0"),
        ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
        ("64:ff9b::/96", "64:ff9b::192.0.2.33"),
    ],
)
def test_translated_addresses_are_read_as_the_examples_of_the_rfc(
    prefix: str, written: str
) -> None:
    assert translated(IPv6Address(written), IPv6Network(prefix)) == IPv4Address("192.0.2.33")


def test_translated_addresses_need_a_setting_and_metadata_is_always_refused() -> None:
    assert "IPv4 inside IPv6" in refusal(IPv6Address("64:ff9b::8.8.8.8"), LIMITS)
    opened = FetchLimits(nat64=(IPv6Network("64:ff9b::/96"),), allow_loopback=True)
    assert refusal(IPv6Address("64:ff9b::8.8.8.8"), opened) == ""
    assert "cloud metadata" in refusal(IPv6Address("64:ff9b::169.254.169.254"), opened)


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_only_global_unicast_ipv6_is_ever_allowed(address: IPv6Address) -> None:
    if refusal(address, LIMITS) == "":
        assert address in ip_network("2000::/3")
        assert address.is_global


@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_what_python_calls_private_is_never_allowed(address: IPv4Address) -> None:
    if refusal(address, LIMITS) == "":
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    assert refusal(ip_address(address), LIMITS) == ""
    assert check_url(f"http://{address}/", LIMITS).host == address


FORMS = [
    *(
        "file:///etc/passwd",
        "ftp://example.com/",
        "data:text/html,x",
        "javascript:alert(1)",
        "gopher://example.com/",
    ),
    *(
        "//example.com/",
        "http:///x",
        "http://",
        "http:/example.com",
        "https://user:pw@example.com/",
        "ws://example.com/",
    ),
    *(
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://localhost.localdomain/",
        "http://./",
    ),
    *(
        "http://exa mple.com/",
        "http://example.com/\x00",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://1.2.3/",
    ),
    *(
        "http://[::1]/",
        "http://[::]/",
        "http://[fe80::1%25eth0]/",
        "http://[fd00:ec2::254]/",
        "http://[ff02::1]/",
    ),
    *(
        "http://168.63.129.16/",
        "http://100.100.100.200/",
        "http://255.255.255.255/",
        "http://999.1.1.1/",
        "http://a.0x7f/",
    ),
    "http://" + "a" * 300 + ".com/" + "x" * 9000,
]


@pytest.mark.parametrize("url", FORMS)
def test_other_schemes_and_odd_forms_are_refused_with_a_reason(url: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        check_url(url, LIMITS)
    assert "not fetched" in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize("port", [0, 1, 22, 25, 81, 444, 1023, *sorted(BLOCKED_PORTS)])
def test_ports_of_other_protocols_are_refused(port: int) -> None:
    with pytest.raises(AddressRefused):
        check_url(f"http://example.com:{port}/", LIMITS)


def test_ordinary_addresses_pass_and_lose_their_fragment() -> None:
    target = check_url("HTTPS://Example.COM:8443/a b?q=ü#part".replace(" ", "%20"), LIMITS)
    assert (target.host, target.port) == ("example.com", 8443)
    assert str(target.url) == "https://example.com:8443/a%20b?q=%C3%BC"
    assert check_url("https://münchen.de/", LIMITS).host == "xn--mnchen-3ya.de"


def test_an_operator_can_open_a_network_but_never_the_metadata_service() -> None:
    opened = FetchLimits(allowed_networks=(ip_network("10.0.0.0/8"), ip_network("169.254.0.0/16")))
    assert check_url("http://10.1.2.3/", opened).host == "10.1.2.3"
    with pytest.raises(AddressRefused):
        check_url("http://192.168.1.1/", opened)
    with pytest.raises(AddressRefused, match="metadata"):
        check_url("http://169.254.169.254/", opened)


def test_loopback_is_allowed_only_where_the_setting_says_so() -> None:
    opened = FetchLimits(allow_loopback=True)
    assert check_url("http://127.0.0.5/", opened).host == "127.0.0.5"
    assert check_url("http://localhost/", opened).host == "localhost"
    with pytest.raises(AddressRefused):
        check_url("http://10.0.0.1/", opened)


@pytest.mark.parametrize("answer", [[], ["no address"]])
def test_a_name_without_a_usable_address_is_unavailable(answer: list[str]) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return answer

    with pytest.raises(SourceError):
        anyio.run(checked_addresses, "name.example", 80, LIMITS, resolve)
