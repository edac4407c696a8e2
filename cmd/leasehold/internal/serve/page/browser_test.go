package page

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/browser"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

var pictures = flag.String("pictures", "", "write the pictures of docs/page.md into this `DIR`")

// TestPictures draws the pictures of the documentation: see "make screens".
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("only with -pictures")
	}
	var d day
	s := newStage(t, memstore.New(&memstore.Options{Clock: d.clock()}), "")
	s.busy(&d)
	w := browser.Start(t).Open(t, true)
	for _, p := range []struct {
		name, path string
		on         browser.Screen
	}{
		{"locks-light", "/", browser.Screen{Width: 1240, Height: 800}},
		{"locks-dark", "/", browser.Screen{Width: 1240, Height: 800, Dark: true}},
		{"locks-phone", "/", browser.Screen{Width: 390, Height: 844, Phone: true}},
		{"lock-light", "/lock?name=deploy/production", browser.Screen{Width: 1240, Height: 800}},
		{"lock-phone", "/lock?name=deploy/production", browser.Screen{Width: 390, Height: 844, Phone: true, Dark: true}},
		{"events-light", "/events", browser.Screen{Width: 1240, Height: 800}},
	} {
		w.Show(p.on)
		w.Go(s.url + p.path)
		if err := os.WriteFile(filepath.Join(*pictures, p.name+".png"), w.Picture(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// visit returns a stage that the window leaves before its server ends.
func visit(t *testing.T, w *browser.Window, st *store.Store, prefix string) *stage {
	s := newStage(t, st, prefix)
	t.Cleanup(func() {
		w.Go("about:blank")
		w.Complaints()
	})
	return s
}

// quiet requires that the browser has found nothing wrong.
func quiet(t *testing.T, w *browser.Window) {
	t.Helper()
	for _, c := range w.Complaints() {
		t.Errorf("the browser complains: %s", c)
	}
}

// The page in a browser: what it shows, live, with and without scripts, and attacked.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	t.Parallel()
	driver := browser.Start(t)
	w := driver.Open(t, true)
	t.Run("views", func(t *testing.T) { testViews(t, w.For(t)) })
	t.Run("live", func(t *testing.T) { testLive(t, w.For(t)) })
	t.Run("break", func(t *testing.T) { testBreak(t, w.For(t)) })
	t.Run("many", func(t *testing.T) { testMany(t, w.For(t)) })
	t.Run("hostile", func(t *testing.T) { testHostile(t, w.For(t)) })
	t.Run("without scripts", func(t *testing.T) { testWithoutScripts(t, driver.Open(t, false)) })
}

// reads is what a screen reader and a keyboard need of each view.
const reads = `
	const wrong = [];
	const named = e => (e.labels && e.labels.length) || e.closest("label") || e.getAttribute("aria-label") || e.textContent.trim();
	for (const e of document.querySelectorAll("input:not([type=hidden]), button, a[href], select")) if (!named(e)) wrong.push("without a name: " + e.outerHTML);
	for (const e of document.querySelectorAll("table")) if (!e.querySelector("caption")) wrong.push("a table without a caption");
	for (const e of document.querySelectorAll("th")) if (!e.scope) wrong.push("th without scope: " + e.outerHTML);
	if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
	for (const name of ["header", "main", "header nav[aria-label]"]) if (!document.querySelector(name)) wrong.push("no " + name);
	const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
	if (new Set(ids).size !== ids.length) wrong.push("an id twice: " + ids);
	if (!document.documentElement.lang) wrong.push("no language");
	if (document.documentElement.scrollWidth > innerWidth) wrong.push("wider than the window: " + document.documentElement.scrollWidth);
	return wrong;`

// contrast returns the texts whose contrast is under what WCAG AA asks for.
const contrast = `
	const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgb = c => { probe.clearRect(0, 0, 1, 1); probe.fillStyle = c; probe.fillRect(0, 0, 1, 1); return [...probe.getImageData(0, 0, 1, 1).data]; };
	const light = ([r, g, b]) => { const f = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
	const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255]; };
	const low = [];
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.offsetParent || e.closest(".unseen, noscript")) continue;
		const a = light(rgb(getComputedStyle(e).color)), b = light(ground(e)), c = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (c < 4.5) low.push(c.toFixed(1) + ": " + e.outerHTML.slice(0, 80));
	}
	return low;`

// Each view has what it should, on a desk and on a phone, in light and dark.
func testViews(t *testing.T, w *browser.Window) {
	var d day
	s := visit(t, w, memstore.New(&memstore.Options{Clock: d.clock()}), "/locks")
	s.busy(&d)
	dark := browser.Desk
	dark.Dark = true
	for _, on := range []browser.Screen{browser.Desk, dark, {Width: 360, Height: 740, Phone: true}} {
		w.Show(on)
		for path, wants := range map[string][]string{
			"/":                            {"deploy/production", "ci-runner-12 pid 88123", "deploy api 4.12.0 to production", "first ci-runner-07 pid 1533", "semaphore, 3 of 3", "not renewed", "handed over", "hangs since the network change"},
			"/lock?name=deploy/production": {"deploy/production", "Break this lease…", "ci-runner-02 pid 7130", "leasehold show --store " + s.url + " deploy/production", "curl " + s.url + "/v1/locks/deploy%2Fproduction"},
			"/lock?name=free":              {"Nobody holds it.", "leasehold run --store"},
			"/events":                      {"broken by alice: hangs since the network change", "its lease ran out, since it was not renewed", "from ci-runner-04 pid 20177"},
			"/events?only=lost":            {"reports/weekly"},
			"/health":                      {"memory-of-one-process", "Excludes within"},
			"/nowhere":                     {"There is no such page."},
		} {
			w.Go(s.url + path)
			text := w.Text("body")
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s, %+v: %q is missing in:\n%s", path, on, want, text)
				}
			}
			var wrong, low []string
			w.Eval(&wrong, reads)
			w.Eval(&low, contrast)
			if len(wrong)+len(low) > 0 {
				t.Errorf("%s, %+v: %q, contrast %q", path, on, wrong, low)
			}
			if path != "/nowhere" { // its status is an error, which the browser says
				quiet(t, w)
			} else {
				w.Complaints()
			}
		}
	}
	w.Show(browser.Desk)
}

// What changes in the store changes in the browser, without a new load. Times run.
func testLive(t *testing.T, w *browser.Window) {
	st := memory(t)
	s := visit(t, w, st, "")
	w.Go(s.url + "/")
	if text := w.Text("main"); !strings.Contains(text, "No lock is held") {
		t.Errorf("at first: %s", text)
	}
	w.Eval(nil, `window.same = true; document.getElementById("prefix").focus()`)
	a, _ := s.hold("a", holder("one", 1, "", 0), time.Minute, store.Kind{}, 0)
	s.hold("c", holder("three", 3, "", 0), time.Minute, store.Kind{}, 0)
	eventually.True(t, "the browser shows a lock", func() bool { return strings.Contains(w.Text(".locks"), "one pid 1") })
	w.Eval(nil, `document.querySelector(".locks tbody").id = "row"`)
	s.hold("b", holder("two", 2, "", 0), time.Minute, store.Kind{}, 0)
	eventually.True(t, "the browser shows the second lock between the others", func() bool {
		var names []string
		w.Eval(&names, `return [...document.querySelectorAll(".locks th[scope=rowgroup] a")].map(a => a.textContent)`)
		return fmt.Sprint(names) == "[a b c]"
	})
	s.wait("a", holder("four", 4, "", 0), time.Minute, store.Kind{}, 0)
	eventually.True(t, "the browser shows a waiter", func() bool { return strings.Contains(w.Text(".waits"), "four pid 4") })

	var first, second float64
	w.Eval(&first, `return document.querySelector("progress").value`)
	eventually.True(t, "the bar runs down", func() bool {
		w.Eval(&second, `return document.querySelector("progress").value`)
		return second < first
	})
	if err := st.Release(t.Context(), store.ReleaseRequest{Lease: a}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the browser shows the hand-off", func() bool {
		return strings.Contains(w.Text("#events"), "from one pid 1 to four pid 4") && strings.Contains(w.Text(".locks"), "four pid 4")
	})
	var same bool
	w.Eval(&same, `return window.same && document.activeElement.id === "prefix"`)
	if !same {
		t.Error("the page was loaded anew, or has lost the focus")
	}

	w.Click("#live") // pause
	var before, after int
	w.Eval(&before, `return +document.body.dataset.loads`)
	for v := s.page.Observer.Latest(); ; {
		next, err := s.page.Observer.Next(t.Context(), v.ID)
		if err != nil || next.ID > v.ID+2 {
			break
		}
	}
	w.Eval(&after, `return +document.body.dataset.loads`)
	if after > before+1 { // one may have been under way
		t.Errorf("%d loads while paused", after-before)
	}
	if got := w.Text("#live"); got != "paused" {
		t.Errorf("the button says %q", got)
	}

	// From the keyboard: / goes to the filter, which filters.
	w.Eval(nil, `document.activeElement.blur()`)
	w.Press("/")
	w.Type("#prefix", "b\ue007")
	eventually.True(t, "the list is filtered", func() bool { return strings.Contains(w.Text("#count"), "1 to 1 of 1") })
	w.Go(s.url + "/")
	w.Press("\ue004") // Tab
	var focus string
	w.Eval(&focus, `return document.activeElement.className`)
	if focus != "skip" {
		t.Errorf("the first stop of the keyboard is %q", focus)
	}
	quiet(t, w)
}

// An operator breaks a lease: the reason, the confirmation, and what came of it.
func testBreak(t *testing.T, w *browser.Window) {
	st := memory(t)
	s := visit(t, w, st, "/locks")
	s.hold("deploy/it's", holder("hung", 7, "deploy", time.Minute), time.Hour, store.Kind{}, 0)
	w.Go(s.url + "/")
	w.Click(".locks tbody a")
	w.Click("details.break summary")
	w.Type("input[name=reason]", "hangs since")
	v := s.page.Observer.Latest() // what is typed survives what happens meanwhile
	for range 3 {
		v, _ = s.page.Observer.Next(t.Context(), v.ID)
	}
	w.Type("input[name=reason]", " noon")
	w.Type("input[name=by]", "alice")
	w.Click("details.break button")
	eventually.True(t, "the page asks back", func() bool { return strings.Contains(w.Text("main"), "Break this lease?") })
	text := w.Text("main")
	for _, want := range []string{"hung pid 7", "hangs since noon", "alice", `leasehold break --store ` + s.url + ` --token 1 --reason 'hangs since noon' 'deploy/it'\''s'`} {
		if !strings.Contains(text, want) {
			t.Errorf("the confirmation does not say %q:\n%s", want, text)
		}
	}
	if state, _ := st.Inspect(t.Context(), "deploy/it's"); state.Holder.Broken {
		t.Error("it is broken already")
	}
	w.Click("button.danger")
	eventually.True(t, "the page says that the lease is broken", func() bool {
		return strings.Contains(w.Text("main"), "The lease is broken: it cannot be renewed.") && strings.HasPrefix(w.URL(), s.url+"/lock?")
	})
	eventually.True(t, "the page says who broke it", func() bool {
		text := w.Text("#lock")
		return strings.Contains(text, "by alice") && strings.Contains(text, "hangs since noon") && !strings.Contains(text, "Break this lease")
	})
	quiet(t, w)
}

// Without scripts, the same works by links and forms.
func testWithoutScripts(t *testing.T, w *browser.Window) {
	st := memory(t)
	s := visit(t, w, st, "")
	s.hold("a", holder("hung", 7, "deploy", time.Minute), time.Hour, store.Kind{}, 0)
	w.Go(s.url + "/")
	w.Type("#prefix", "a")
	w.Click("form[role=search] button")
	eventually.True(t, "the list is filtered", func() bool {
		text := w.Text("main")
		return strings.Contains(text, "1 to 1 of 1") && strings.Contains(text, "Load this view again every 5 seconds")
	})
	w.Click(".locks tbody a")
	w.Click("details.break summary")
	w.Type("input[name=reason]", "gone")
	w.Click("input[name=now]")
	w.Click("details.break button")
	w.Click("button.danger")
	eventually.True(t, "the page says that the lease is over", func() bool {
		return strings.Contains(w.Text("main"), "The lease is over. Its holder may not know")
	})
	if state, _ := st.Inspect(t.Context(), "a"); state.Held {
		t.Error("the lock is held")
	}
	s.hold("b", holder("next", 8, "", 0), time.Hour, store.Kind{}, 0)
	w.Go(s.url + "/?refresh=1")
	s.hold("c", holder("last", 9, "", 0), time.Hour, store.Kind{}, 0)
	eventually.True(t, "the view was loaded again", func() bool { return strings.Contains(w.Text(".locks"), "last pid 9") })
	w.Complaints() // scripts that are blocked
}

// With ten thousand locks the page loads, sorts and follows changes.
func testMany(t *testing.T, w *browser.Window) {
	st := memory(t)
	s := visit(t, w, st, "")
	for i := range 10_000 {
		s.hold(fmt.Sprintf("job/%05d", i), holder("worker", i, "one of many", time.Minute), time.Hour, store.Kind{}, 0)
	}
	eventually.True(t, "the store was looked at", func() bool { return len(s.page.Observer.View(t.Context()).Locks) == 10_000 })
	w.Go(s.url + "/")
	if got := w.Text("#count"); got != "1 to 100 of 10000" {
		t.Errorf("the count is %q", got)
	}
	var took float64
	w.Eval(&took, `return performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`)
	if took > 10_000 {
		t.Errorf("it took %v ms to load", took)
	}
	w.Click("nav.pages a[rel=next]")
	eventually.True(t, "the next page is there", func() bool { return w.Text("#count") == "101 to 200 of 10000" })
	s.hold("a-new-one", holder("late", 1, "", 0), time.Hour, store.Kind{}, 0)
	eventually.True(t, "the browser counts the new one", func() bool { return strings.HasSuffix(w.Text("#count"), "of 10001") })
	w.Type("#prefix", "a-new\ue007")
	eventually.True(t, "the browser shows it", func() bool { return strings.Contains(w.Text(".locks"), "late pid 1") })
	quiet(t, w)
}

// Another site can neither show the page in a frame nor break a lease by a form, and hostile
// descriptions run nothing.
func testHostile(t *testing.T, w *browser.Window) {
	st := memory(t)
	s := visit(t, w, st, "")
	for _, text := range hostile {
		h := store.Holder{Host: text, PID: 1, Purpose: text}
		l := store.Lease{Name: text, Owner: store.NewOwner(), TTL: time.Hour, Meta: h.Encode()}
		if _, err := st.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
	}
	_, g := s.hold("precious", holder("h", 1, "", 0), time.Hour, store.Kind{}, 0)
	for _, path := range []string{"/", "/lock?" + query("name", hostile[0]), "/lock?" + query("name", hostile[1]), "/?" + query("prefix", hostile[1])} {
		w.Go(s.url + path)
		var scripts, images int
		w.Eval(&scripts, `return document.scripts.length`)
		w.Eval(&images, `return document.images.length`)
		if scripts != 1 || images != 1 {
			t.Errorf("%s: %d scripts, %d images", path, scripts, images)
		}
		if got := w.Text("main"); !strings.Contains(got, "alert(1)") {
			t.Errorf("%s does not show the text: %s", path, got)
		}
		quiet(t, w)
	}
	w.Go(s.url + "/")
	var loads int
	eventually.True(t, "the view was shown anew", func() bool {
		w.Eval(&loads, `return +document.body.dataset.loads || 0`)
		return loads > 1
	})
	var scripts int
	if w.Eval(&scripts, `return document.querySelectorAll("main script, main img").length`); scripts != 0 {
		t.Errorf("%d elements came with the new view", scripts)
	}
	quiet(t, w)

	// localhost is another site than 127.0.0.1.
	evil := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, `<h1>evil</h1><iframe src="%s/"></iframe><form id="f" method="post" action="%s/break?name=precious&token=%v"><input name="reason" value="x"><input name="confirm" value="yes"><input name="now" value="1"></form>`, s.url, s.url, g.Token)
	}))
	defer evil.Close()
	w.Go(strings.Replace(evil.URL, "127.0.0.1", "localhost", 1))
	eventually.True(t, "the browser refuses the frame", func() bool {
		return strings.Contains(strings.Join(w.Complaints(), "\n"), "frame-ancestors")
	})
	w.Eval(nil, `document.getElementById("f").submit()`)
	eventually.True(t, "the form is refused", func() bool { return strings.Contains(w.Text("body"), "came from another site") })
	if state, _ := st.Inspect(t.Context(), "precious"); !state.Held || state.Holder.Broken {
		t.Errorf("another site has broken the lease: %+v", state)
	}
}
