"""The live map in a real browser: sign in, start, watch, judge, stop, reconnect; hostile names; screens and axe."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from browser_pages import check_accessibility, check_screens
from field_server import HEADERS, TOKEN, SearchGround, create, fly, post, server_thread

pytestmark = pytest.mark.browser

GOAL = (0, 3)
NEAR = (1, 3)
"""A goal that the third photo shows."""
HOSTILE = '<img src=x onerror=alert(1)><b>North</b> & "south" \'‮'


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, search_ground: SearchGround) -> Iterator[str]:
    with server_thread(tmp_path_factory.mktemp("map") / "a.sqlite", ground=search_ground.raster) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, headers=HEADERS, timeout=30) as client:
        yield client


def signed_in(open_page: Any, url: str, path: str = "", **options: Any) -> Any:
    """Open a page after signing in."""
    page = open_page(url, **options)
    page.fill("#token", TOKEN)
    page.click("#sign-in-form button")
    page.wait_for_selector("#list:not([hidden])")
    if path:
        page.goto(f"{url}/#/{path}")
    return page


def wait_for_photos(page: Any, count: int) -> None:
    page.wait_for_selector(f"html[data-photos='{count}']", state="attached")


def test_a_search_is_flown_while_the_page_watches(open_page, url: str, client, search_ground: SearchGround):
    state = create(client, search_ground, NEAR, name="North ridge")
    page = signed_in(open_page, url)
    page.get_by_role("link", name="North ridge").first.click()
    wait_for_photos(page, 0)
    assert page.inner_text("h1:visible") == "North ridge"
    assert page.inner_text("#live") == "Live"
    row, col = state["next"]["row"] + 1, state["next"]["col"] + 1
    assert f"Next segment: row {row}, column {col}." in page.inner_text("#summary")
    page.wait_for_function("() => document.querySelector('.leaflet-ground-pane img').naturalWidth > 0")
    flown = 0
    while state["status"] == "searching":
        state, flown = post(client, search_ground, state).json(), flown + 1
        wait_for_photos(page, flown)
        assert page.locator(".leaflet-photos-pane img").count() == flown
    expect(page.locator("#summary")).to_contain_text("A photo shows the goal")
    expect(page.locator("#facts")).to_contain_text(f"{state['declared']['lat']:.6f}")
    expect(page.locator("#drones td").first).to_have_text("none, the search has ended")
    expect(page.locator("#photos li").first).to_contain_text(f"row {NEAR[0] + 1}, column {NEAR[1] + 1}")
    assert page.title().startswith("Found · North ridge")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.leaflet-photos-pane img')].every(one => one.naturalWidth === 48)"
    )
    top = max(map(max, client.get(f"/searches/{state['id']}/belief").json()["poa"]))
    expect(page.locator("#top")).to_have_text(f"{round(100 * top)} %")


def test_a_verdict_on_one_page_changes_the_belief_on_all(open_page, url: str, client, search_ground: SearchGround):
    state = create(client, search_ground, (1, 1))  # the ninth photo, one more than the page lists at first
    first, second = (signed_in(open_page, url, state["id"]) for _ in range(2))
    path = fly(client, search_ground, state)
    for page in (first, second):
        wait_for_photos(page, len(path))
        page.click("#all")
    row, col = path[-1]
    before = client.get(f"/searches/{state['id']}/belief").json()["poa"][row][col]
    first.locator(".thumbnail").first.click()
    expect(first.locator("#photo-dialog")).to_contain_text("Nobody has judged this photo yet.")
    first.wait_for_function("() => document.querySelector('#photo-large').naturalWidth > 0")
    check_accessibility(first)
    first.click("#reject")
    for page in (first, second):
        expect(page.locator("#photos li.rejected")).to_contain_text("rejected")
        expect(page.locator("#summary")).not_to_contain_text("A photo shows the goal")
    assert first.inner_text("#summary") == second.inner_text("#summary")
    assert client.get(f"/searches/{state['id']}/belief").json()["poa"][row][col] < before
    second.locator("#photos li.rejected").get_by_text("Confirm").click()
    expect(first.locator("#summary")).to_contain_text("A person has confirmed the goal")


def test_the_second_click_of_a_double_click_judges_no_other_photo(open_page, url: str, client, search_ground):
    state = create(client, search_ground, GOAL)
    for cell in ((3, 0), (3, 1), (3, 2)):
        post(client, search_ground, state, cell)
    page = signed_in(open_page, url, state["id"])
    wait_for_photos(page, 3)
    box = page.get_by_text("Reject", exact=True).first.bounding_box()
    page.mouse.click(box["x"] + 9, box["y"] + 9)
    expect(page.locator("#photos li").last).to_contain_text("rejected")
    page.mouse.down(click_count=2)  # over another photo, which has moved there
    page.mouse.up(click_count=2)
    page.locator("#add-drone").dblclick()
    expect(page.locator("#drones th")).to_have_text(["1", "2"])
    expect(page.locator("#error")).to_be_hidden()
    verdicts = [photo["verdict"] for photo in client.get(f"/searches/{state['id']}/candidates").json()["candidates"]]
    assert verdicts == [None, None, False]


def hide(page: Any) -> None:
    """Let a page believe that nobody sees it."""
    page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true })")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_more_tabs_than_connections_may_be_open_and_hidden_ones_are_up_to_date(
    open_page, url: str, client, search_ground: SearchGround
):
    state = create(client, search_ground, GOAL, name="North ridge")
    first = signed_in(open_page, url)
    first.clock.install()
    first.goto(f"{url}/#/{state['id']}")
    for number in range(7):
        page = open_page(f"{url}/#/{state['id']}", context=first.context) if number else first
        wait_for_photos(page, 0)
        hide(page)
    post(client, search_ground, state)
    client.post(f"/searches/{state['id']}/photos/1/verdict", json={"goal": True})
    first.clock.run_for(20_000)
    wait_for_photos(first, 1)
    assert first.title() == "Found · North ridge · airloc"


def test_three_drones_have_tracks_and_waypoints_of_their_own(open_page, url: str, client, search_ground: SearchGround):
    state = create(client, search_ground, GOAL, drones=3)
    page = signed_in(open_page, url, state["id"])
    wait_for_photos(page, 0)
    for vehicle in state["vehicles"]:
        post(client, search_ground, state | {"next": vehicle["next"]}, vehicle=vehicle["id"])
    wait_for_photos(page, 3)
    expect(page.locator(".label.vehicle")).to_have_text(["1", "2", "3"])
    expect(page.locator(".label.next")).to_have_text(["\u2192 1", "\u2192 2", "\u2192 3"])
    expect(page.locator("#summary")).to_contain_text("Next segments: drone 1 row")
    expect(page.locator("#photos li").first).to_contain_text("drone ")
    page.get_by_label("Withdraw: drone 2").click()
    expect(page.locator("#drones tr").nth(1)).to_contain_text("withdrawn")
    expect(page.locator(".label.next")).to_have_text(["\u2192 1", "\u2192 3"])
    page.get_by_label("Next sortie: drone 2").click()
    expect(page.locator(".label.next")).to_have_text(["\u2192 1", "\u2192 2", "\u2192 3"])
    page.click("#add-drone")
    expect(page.locator("#drones th")).to_have_text(["1", "2", "3", "4"])
    assert [one["id"] for one in client.get(f"/searches/{state['id']}").json()["vehicles"]] == ["1", "2", "3", "4"]
    check_accessibility(page)


def test_a_search_goes_on_in_another_sortie(open_page, url: str, client, search_ground: SearchGround):
    state = create(client, search_ground, GOAL, budget=1)
    page = signed_in(open_page, url, state["id"])
    fly(client, search_ground, state)
    expect(page.locator("#summary")).to_contain_text("start the next sortie")
    page.get_by_label("Next sortie: drone 1").click()
    expect(page.locator("#summary")).to_contain_text("Searching. Next segment: row")
    expect(page.get_by_label("Next sortie: drone 1")).to_be_hidden()
    assert client.get(f"/searches/{state['id']}").json()["status"] == "searching"


def files_of(ground: SearchGround, kind: str) -> dict[str, Any]:
    """The outline of the ground as a file of the form."""
    (south, west), (north, east) = ground.corners
    ring = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    if kind == "kml":
        text = " ".join(f"{lon!r},{lat!r},0" for lon, lat in ring)
        inner = f"<outerBoundaryIs><LinearRing><coordinates>{text}</coordinates></LinearRing></outerBoundaryIs>"
        content = f'<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><Polygon>{inner}</Polygon></Placemark></kml>'
    else:
        polygon = {"type": "Polygon", "coordinates": [ring]}
        content = json.dumps({"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": polygon}]})
    return {"name": f"area.{kind}", "mimeType": "text/plain", "buffer": content.encode()}


def test_a_search_by_a_description_shows_it(open_page, tmp_path: Path, search_ground: SearchGround):
    text = "Fly to a road beside a field <b>"
    with (
        server_thread(tmp_path / "a.sqlite", agent="belief") as url,
        httpx.Client(base_url=url, headers=HEADERS, timeout=30) as client,
    ):
        page = signed_in(open_page, url, "new")
        page.fill("#corners", " ".join(f"{lat},{lon}" for lat, lon in search_ground.corners))
        page.fill("#goal-words", text)
        page.click("text=Start the search >> visible=true")
        wait_for_photos(page, 0)
        expect(page.locator(".goal figcaption")).to_have_text(f"Goal: {text}")
        expect(page.locator("#goal")).to_be_hidden()
        expect(page.locator("#facts")).to_contain_text("reads like an instruction")
        state = client.get(f"/searches/{page.url.rpartition('/')[2]}").json()
        post(client, search_ground, state)
        wait_for_photos(page, 1)
        page.click(".thumbnail")
        expect(page.locator("#photo-goal")).to_be_hidden()


def zone_file(ground: SearchGround) -> dict[str, Any]:
    """A no-fly zone around the corner of a cell."""
    around = [(2.4, 2.4), (2.4, 2.6), (2.6, 2.6), (2.6, 2.4), (2.4, 2.4)]
    ring = [(lon, lat) for lat, lon in ground.layout.lat_lon(around).tolist()]
    content = json.dumps({"type": "Polygon", "coordinates": [ring]}).encode()
    return {"name": "zones.json", "mimeType": "text/plain", "buffer": content}


def test_a_search_is_started_from_the_form(open_page, url: str, client, search_ground: SearchGround):
    page = signed_in(open_page, url, "new")
    page.fill("#name", HOSTILE)
    corners = []
    for kind in ("kml", "geojson"):
        page.fill("#corners", "")
        page.set_input_files("#outline-file", files_of(search_ground, kind))
        expect(page.locator("#corners")).not_to_have_value("")
        corners.append(page.input_value("#corners"))
    assert corners[0] == corners[1]
    page.set_input_files("#goal-file", {"name": "g.png", "mimeType": "image/png", "buffer": search_ground.photo(GOAL)})
    page.fill("#cell", "96")
    page.fill("#budget", "33")
    page.click("text=More about the goal and the flight")
    page.set_input_files("#no-fly-file", zone_file(search_ground))
    page.click("text=What is already known")
    page.fill("#lkp", "{:.6f}, {:.6f}".format(*search_ground.layout.lat_lon((1, 1))))  # as the page shows positions
    page.select_option("#subject", "child-1-3")
    page.click("text=Start the search >> visible=true")
    wait_for_photos(page, 0)
    assert page.inner_text("#search-title") == HOSTILE
    assert "33" in page.inner_text("#drones")
    search = page.url.rpartition("/")[2]
    assert len(client.get(f"/searches/{search}/map").json()["no_fly"]) == 1
    assert page.locator("path[stroke='#d81e1e']").count() == 1
    assert client.get(f"/searches/{search}").json()["rows"] == search_ground.layout.grid.rows
    belief = client.get(f"/searches/{search}/belief").json()["poa"]
    assert belief[1][1] == max(map(max, belief)), "the lost person was last seen there"
    page.goto(f"{url}/#/")
    page.wait_for_selector("#searches li")
    assert page.locator("#searches a").first.inner_text() == HOSTILE
    assert page.locator("#searches img, #searches b").count() == 0
    page.goto(f"{url}/#/{search}")
    wait_for_photos(page, 0)
    page.click("#stop")
    page.click("#stop-no")
    page.click("#stop")
    page.click("#stop-yes")
    expect(page.locator("#summary")).to_contain_text("The search was stopped.")
    expect(page.locator("#stop")).to_be_hidden()
    assert client.get(f"/searches/{search}").json()["status"] == "cancelled"


def hold_geometry(page: Any, address: str) -> Any:
    """Open the page of a search and return the request for its geometry, which waits until it is continued."""
    held: list[Any] = []
    page.route("**/map", lambda route: held.append(route))
    page.goto(address)
    for _ in range(1000):
        if held:
            break
        page.wait_for_timeout(10)
    return held[0]


def test_buttons_of_a_page_that_still_loads_take_no_clicks_and_work_as_soon_as_they_do(
    open_page, url: str, client, search_ground: SearchGround
):
    state = create(client, search_ground, GOAL)
    page = signed_in(open_page, url, state["id"])
    wait_for_photos(page, 0)
    page.goto(f"{url}/#/")
    page.wait_for_selector("#searches li")
    held = hold_geometry(page, f"{url}/#/{state['id']}")
    expect(page.locator("#stop")).to_be_hidden()
    assert page.locator("html[data-photos]").count() == 0
    held.continue_()
    page.click("#stop")
    page.click("#stop-no")
    expect(page.locator("#stop-dialog")).to_be_hidden()


def test_the_section_asked_for_last_is_shown_though_an_earlier_one_loads_later(
    open_page, url: str, client, search_ground: SearchGround
):
    state = create(client, search_ground, GOAL)
    page = signed_in(open_page, url)
    held = hold_geometry(page, f"{url}/#/{state['id']}")
    page.goto(f"{url}/#/new")
    page.wait_for_selector("#new:not([hidden])")
    with page.expect_response("**/map"):
        held.continue_()
    page.wait_for_timeout(100)
    expect(page.locator("#new")).to_be_visible()
    expect(page.locator("#search")).to_be_hidden()


def test_a_search_from_a_home_with_a_flight_time_shows_it_and_an_orthophoto_that_is_sent(
    open_page, tmp_path: Path, search_ground: SearchGround
):
    with server_thread(tmp_path / "plain.sqlite") as url:
        page = signed_in(open_page, url, "new", ignore_console=True)  # Chromium writes the status 422 to the console
        page.set_input_files("#outline-file", files_of(search_ground, "geojson"))
        goal = {"name": "g.png", "mimeType": "image/png", "buffer": search_ground.photo(GOAL)}
        page.set_input_files("#goal-file", goal)
        page.fill("#cell", "96")
        page.fill("#endurance", "10")
        page.click("text=More about the goal and the flight")
        page.fill("#home", "{},{}".format(*search_ground.layout.lat_lon((3, 0))))
        page.fill("#wind", "3")
        page.fill("#reserve", "20")
        page.click("text=Start the search >> visible=true")
        wait_for_photos(page, 0)
        expect(page.locator(".label.vehicle")).to_have_text(["Home"])
        assert page.locator("#layers label", has_text="Orthophoto").count() == 0
        page.click("text=Orthophoto below the grid")
        page.set_input_files("#ortho-file", {"name": "a.tif", "mimeType": "image/tiff", "buffer": b"no image"})
        expect(page.locator("#error")).to_contain_text("not a GeoTIFF")
        page.set_input_files("#ortho-file", search_ground.raster.path)
        expect(page.locator("#layers label", has_text="Orthophoto")).to_have_count(1)


def test_an_invalid_outline_is_refused_with_the_reason(open_page, url: str):
    page = signed_in(open_page, url, "new", ignore_console=True)  # Chromium writes that the XML is invalid
    for name, content, fact in (  # no two facts in a row are alike, so that each is seen to arrive
        ("a.geojson", b"{", "is not GeoJSON"),
        ("a.kml", b"<kml><Polygon>", "is not KML"),
        ("a.json", b'{"type": "Polygon", "coordinates": 7}', "is not GeoJSON"),
        ("a.kml", b"\x00\xff" * 50, "is not KML"),
        ("a.json", b'{"type": "Point", "coordinates": [1, 2]}', "has 0 polygons"),
        ("a.json", b'{"type": "Polygon", "coordinates": [[[1, "x"], [2, 2], [3, 3]]]}', "no valid coordinates"),
        ("a.geojson", b" " * 5_000_001, "larger than 5 MB"),
        ("a.json", b'{"type": "Polygon", "coordinates": [[[5e5, 6e6], [5e5, 7e6], [6e5, 6e6]]]}', "in WGS 84"),
    ):
        page.set_input_files("#outline-file", {"name": name, "mimeType": "text/plain", "buffer": content})
        expect(page.locator("#error")).to_contain_text(fact)
        assert page.input_value("#corners") == ""


def test_an_invalid_form_creates_no_search(open_page, url: str, client):
    before = client.get("/searches").json()
    page = signed_in(open_page, url, "new", ignore_console=True)  # Chromium writes the status 422 to the console
    page.set_viewport_size({"width": 390, "height": 844})
    for corners, goal, fact in (
        ("59.1,15.1", b"\xff\xd8", "outline"),
        ("0,0 1,1 1,0 0,1", b"\xff\xd8", "crosses itself"),  # in lines that leave the button free
        ("59.1,15.1 59.2,15.2", b"\xff\xd8 half a picture", "goal image"),
        ("99.1,15.1 59.2,15.2", b"\xff\xd8", "outline"),
        ("59.1,15.1 x,15.2", b"\xff\xd8", "x,15.2"),
        ("59.1,15.1 59.2,", b"\xff\xd8", '"59.2,"'),
    ):
        page.fill("#corners", corners)
        page.set_input_files("#goal-file", {"name": "g.jpg", "mimeType": "image/jpeg", "buffer": goal})
        page.click("text=Start the search >> visible=true")
        expect(page.locator("#error")).to_contain_text(fact)
        assert client.get("/searches").json() == before


def test_a_huge_picture_is_refused_before_it_is_sent(open_page, url: str, client):
    page = signed_in(open_page, url, "new")
    page.fill("#corners", "59.1,15.1 59.2,15.2")
    page.evaluate("""() => {
        const files = new DataTransfer();
        files.items.add(new File([new Uint8Array(18_000_001)], "huge.jpg"));
        document.querySelector("#goal-file").files = files.files;
    }""")
    page.click("text=Start the search >> visible=true")
    expect(page.locator("#error")).to_contain_text("huge.jpg is larger than 18 MB")


def test_the_page_reconnects_to_a_restarted_server(open_page, tmp_path: Path, search_ground: SearchGround):
    store = tmp_path / "b.sqlite"
    with server_thread(store, close_pages=False) as url, httpx.Client(base_url=url, headers=HEADERS) as client:
        state = create(client, search_ground, GOAL)
        page = signed_in(open_page, url, state["id"], ignore_console=True)
        state = post(client, search_ground, state).json()
        wait_for_photos(page, 1)
    expect(page.locator("#live")).to_contain_text("Connection lost")
    port = int(url.rpartition(":")[2])
    with server_thread(store, port=port) as url, httpx.Client(base_url=url, headers=HEADERS) as client:
        post(client, search_ground, state)
        wait_for_photos(page, 2)
        expect(page.locator("#live")).to_have_text("Live")


def test_a_wrong_token_is_refused_and_signing_out_ends_the_session(open_page, url: str, client, search_ground):
    page = open_page(url)
    page.fill("#token", "a guess of mine")
    page.click("#sign-in-form button")
    expect(page.locator("#error")).to_contain_text("not the token")
    page.fill("#token", TOKEN)
    page.click("#sign-in-form button")
    page.wait_for_selector("#list:not([hidden])")
    page.click("#sign-out")
    page.reload()
    page.wait_for_selector("#sign-in:not([hidden])")


def test_an_unknown_search_leads_to_the_list(open_page, url: str):
    page = signed_in(open_page, url, "%3Cscript%3E", ignore_console=True)
    expect(page.locator("#error")).to_contain_text("There is no search '<script>'")
    assert page.is_visible("#list")
    page.goto(f"{url}/#/%E0%A4%A")
    expect(page.locator("#error")).to_contain_text("There is no search '%E0%A4%A'")
    page.click("text=New search")
    expect(page.locator("#new")).to_be_visible()


def test_the_map_is_used_with_the_keyboard_and_read_as_text(open_page, url: str, client, search_ground: SearchGround):
    state = create(client, search_ground, GOAL)
    page = signed_in(open_page, url, state["id"])
    wait_for_photos(page, 0)
    page.focus("#map")
    zoom = page.inner_text(".leaflet-control-scale-line")
    page.keyboard.press("Minus")
    page.keyboard.press("Minus")
    expect(page.locator(".leaflet-control-scale-line")).not_to_have_text(zoom)
    page.focus("#row")
    page.keyboard.type("2")
    page.keyboard.press("Tab")
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    lat, lon = search_ground.layout.lat_lon((1, 2)).tolist()
    expect(page.locator("#segment")).to_contain_text(
        f"Segment row 2, column 3 at {lat:.6f}, {lon:.6f}: POA 4 %, POD 0 %"
    )
    page.locator("#table-details summary").press("Enter")
    assert page.locator("#best tr").count() == 8
    for cell in ((3, 0), (3, 1), (3, 2)):
        post(client, search_ground, state, cell)
    wait_for_photos(page, 3)
    page.locator("#photos .verdict button").nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#photos li").last).to_contain_text("rejected")
    expect(page.locator("#photos .thumbnail").first).to_be_focused()  # the next photo to judge


def test_the_layers_of_the_map_are_switched_off_and_on(open_page, url: str, client, search_ground: SearchGround):
    state = create(client, search_ground, GOAL)
    post(client, search_ground, state)
    page = signed_in(open_page, url, state["id"])
    wait_for_photos(page, 1)
    for layer, selector in [
        ("Photos", ".leaflet-photos-pane img"),
        ("Probability", ".leaflet-probability-pane canvas"),
        ("Orthophoto", ".leaflet-ground-pane img"),
    ]:
        expect(page.locator(selector)).to_have_count(1)
        page.get_by_label(layer, exact=True).uncheck()
        expect(page.locator(selector)).to_have_count(0)
        page.get_by_label(layer, exact=True).check()
        expect(page.locator(selector)).to_have_count(1)


def test_every_part_is_accessible_and_fits_the_screen(open_page, url: str, client, search_ground: SearchGround):
    state = create(client, search_ground, GOAL, name="x" * 100, heading=20)
    post(client, search_ground, state)
    page = open_page(url)
    check_screens(page)
    page = signed_in(open_page, url)
    page.wait_for_selector("#searches li")
    check_screens(page)
    page.goto(f"{url}/#/new")
    page.wait_for_selector("#new:not([hidden])")
    page.click("#new summary")
    check_screens(page)
    page.goto(f"{url}/#/{state['id']}")
    wait_for_photos(page, 1)
    page.click("#table-details summary")
    check_screens(page)
    page.click("#stop")
    check_screens(page)
