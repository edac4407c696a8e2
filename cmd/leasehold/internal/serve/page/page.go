package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/observe"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/store"
)

// Options configure a Page. Observer and Client are needed.
type Options struct {
	// Observer looks at the store.
	Observer *observe.Observer
	// Client breaks leases in it, and Caps describes it.
	Client *leasehold.Client
	Caps   func() store.Caps
	// Prefix is the path below which the page is, such as "/locks". Requests come without it.
	Prefix string
	// TraceURL is the address of a trace, with "{trace}" in place of its number. Empty: the page
	// shows the number.
	TraceURL string
	// Examine examines the store as "leasehold doctor" does. Nil: the page has no health.
	Examine func(context.Context) ([]doctor.Finding, error)
	// Log receives who broke a lease. Nil: nothing is logged.
	Log *slog.Logger
}

// Page answers the requests of browsers. It is safe for concurrent use. The rights of a client
// are those of the request's context: see rights.Of.
type Page struct {
	Options
	health  health
	streams observe.Streams // of browsers that are told of changes

	mu    sync.Mutex
	shown map[shownKey]shown
}

// shownKey identifies a view that several browsers can share. Clients that are not told apart
// have no name, and all of them the same rights.
type shownKey struct {
	named  *rights.Client // nil: it has no name
	breaks bool
	url    string
	base   string
}

func keyOf(r *http.Request, prefix string) shownKey {
	k := shownKey{named: rights.Of(r.Context()), url: r.URL.Path + "?" + r.URL.RawQuery, base: baseURL(r, prefix)}
	if k.breaks = k.named.MayAny(rights.Break); k.named.Name == "" {
		k.named = nil
	}
	return k
}

type shown struct {
	at     time.Time
	status int
	body   []byte
}

const (
	// sharedFor is how long a view is shown again to others before it is made anew.
	sharedFor = 500 * time.Millisecond
	// mostShared bounds the views that are kept for that time.
	mostShared = 64
	// mostQuery bounds what an address says: the name of a lock, most of all.
	mostQuery = 16 << 10
	// mostForm bounds a form that is sent.
	mostForm = 16 << 10
)

// New returns a page.
func New(o Options) *Page {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Page{Options: o, streams: observe.NewStreams(), shown: map[shownKey]shown{}}
}

// Nothing from elsewhere is loaded, nothing inline is executed, no other site shows the page in a
// frame, and forms are sent here only.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // "no-referrer" would hide where a form comes from
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")

	if f, ok := files[strings.TrimPrefix(r.URL.Path, "/")]; ok && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		h.Set("Content-Type", f.kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", f.tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
		return
	}
	post := r.URL.Path == "/break"
	switch {
	case len(r.URL.RawQuery) > mostQuery:
		p.fail(w, r, http.StatusRequestURITooLong, "The address is too long.")
		return
	case post && r.Method != http.MethodPost:
		h.Set("Allow", http.MethodPost)
		p.fail(w, r, http.StatusMethodNotAllowed, "A lease is broken by the form on the page of its lock.")
		return
	case !post && r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		p.fail(w, r, http.StatusMethodNotAllowed, "This page can only be read.")
		return
	case post && !sameOrigin(r):
		p.fail(w, r, http.StatusForbidden, "The request came from another site, or does not say where it came from, so it was refused. Programs use POST /v1/locks/NAME/break.")
		return
	case !rights.Of(r.Context()).MayAny(rights.Look):
		p.fail(w, r, http.StatusForbidden, "This client may not look at any lock.")
		return
	}
	switch r.URL.Path {
	case "":
		h.Set("Location", p.Prefix+"/")
		w.WriteHeader(http.StatusPermanentRedirect)
	case "/":
		p.share(w, r, p.locks)
	case "/lock":
		p.share(w, r, p.lock)
	case "/events":
		p.share(w, r, p.events)
	case "/health":
		p.share(w, r, p.healthView)
	case "/live":
		p.live(w, r)
	case "/break":
		p.breakLease(w, r)
	default:
		p.fail(w, r, http.StatusNotFound, "There is no such page.")
	}
}

// sameOrigin reports whether a browser sent the request from a page of this server. Over plain
// HTTP to another machine, browsers say Origin only.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && strings.EqualFold(origin.Host, r.Host)
}

// view is what each template is given.
type view struct {
	Title string
	// At is "locks", "lock", "events" or "health".
	At      string
	Now     time.Time
	Refresh int // seconds; 0: the browser is not asked to load the view again
	Status  status
	Trouble string // why what is shown may be out of date
	// Data is that of the template called At.
	Data any
}

// status is what all views show of the store.
type status struct {
	Store, Class   string
	Whole          bool // the client may look at all locks, and at the store
	Held, Waiting  int
	Oldest         time.Duration
	Counts         observe.Counts
	Lost           uint64
	Nodes, Working int // of a store of several nodes
	Doctor         verdict
	Client         string
	ReadOnly       bool
}

// viewOf prepares what all views have.
func (p *Page) viewOf(r *http.Request, at, title string, v *observe.View, locks []observe.Lock, now time.Time) *view {
	caps := p.Caps()
	client := rights.Of(r.Context())
	s := status{Store: caps.Engine, Class: caps.Class.String(), Held: len(locks), Client: client.Name, ReadOnly: !client.MayAny(rights.Break)}
	s.Waiting, s.Oldest = observe.Waiting(locks, now)
	if s.Whole = client.May(rights.Look, ""); s.Whole {
		s.Counts, s.Lost, s.Doctor = v.Counts, v.Counts.LostBroken+v.Counts.LostExpired, p.health.verdict()
		for _, n := range v.Nodes {
			s.Nodes++
			if observe.Well(n) {
				s.Working++
			}
		}
	}
	refresh, _ := strconv.Atoi(r.URL.Query().Get("refresh"))
	if refresh < 0 || refresh > 3600 {
		refresh = 0
	}
	return &view{Title: title, At: at, Now: now, Refresh: refresh, Status: s, Trouble: trouble(v, now)}
}

// stale is how old what is shown can be without a word.
const stale = 12 * time.Second

// trouble says why what v shows may be out of date, or is not all.
func trouble(v *observe.View, now time.Time) string {
	age := brief(now.Sub(v.SeenAt))
	switch {
	case v.ID == 0:
		return "The store has not answered yet."
	case errors.Is(v.Err, store.ErrIncomplete):
		return "These are not all locks: " + store.Excerpt(v.Err.Error())
	case v.Err != nil && v.SeenAt.IsZero():
		return "The store cannot be asked: " + store.Excerpt(v.Err.Error())
	case v.Err != nil:
		return "The store cannot be asked, and this was seen " + age + " ago: " + store.Excerpt(v.Err.Error())
	case now.Sub(v.SeenAt) > stale+21*v.Took:
		return "The store does not answer. This was seen " + age + " ago."
	}
	return ""
}

// may returns those of locks that the client of r may look at.
func may(r *http.Request, locks []observe.Lock) []observe.Lock {
	client := rights.Of(r.Context())
	hidden := func(l observe.Lock) bool { return !client.May(rights.Look, l.Name) }
	if !slices.ContainsFunc(locks, hidden) {
		return locks
	}
	return slices.DeleteFunc(slices.Clone(locks), hidden)
}

// share answers with a view that was made for the same client and address a moment ago, or makes
// it.
func (p *Page) share(w http.ResponseWriter, r *http.Request, make func(r *http.Request) (int, *view)) {
	key := keyOf(r, p.Prefix)
	p.mu.Lock()
	s, ok := p.shown[key]
	p.mu.Unlock()
	if !ok || time.Since(s.at) > sharedFor {
		status, v := make(r)
		s = shown{time.Now(), status, render(v)}
		p.mu.Lock()
		if len(p.shown) >= mostShared {
			clear(p.shown)
		}
		p.shown[key] = s
		p.mu.Unlock()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(s.status)
	w.Write(s.body)
}

// fail answers with an error that people can read.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	v := p.viewOf(r, "failure", http.StatusText(status), p.Observer.Latest(), nil, time.Now())
	v.Data = message
	p.write(w, status, v)
}

func (p *Page) write(w http.ResponseWriter, status int, v *view) {
	body := render(v)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(body)
}

func render(v *view) []byte {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, "page", v); err != nil {
		panic(err) // a template does not fit its view
	}
	return b.Bytes()
}

//go:embed templates static
var embedded embed.FS

// templates are parsed when a page is first rendered: most runs of the command serve none.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"brief": brief, "ms": func(d time.Duration) int64 { return d.Milliseconds() }, "clock": clockTime, "stamp": stamp,
	}).ParseFS(embedded, "templates/*.html"))
})

// file is what a browser loads besides a view.
type file struct {
	kind, tag string
	body      []byte
}

var files = map[string]file{
	"page.css": load("page.css", "text/css; charset=utf-8"),
	"page.js":  load("page.js", "text/javascript; charset=utf-8"),
	"icon.svg": load("icon.svg", "image/svg+xml"),
}

func load(name, kind string) file {
	b, err := embedded.ReadFile("static/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	sum := sha256.Sum256(b)
	return file{kind, `"` + hex.EncodeToString(sum[:8]) + `"`, b}
}
