package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/history"
	"github.com/leasehold-dev/leasehold/guard/httpguard"
)

// guarded is a second resource, behind a guard that checks tokens. Run serves it to the workers.
type guarded struct {
	url    string
	server *http.Server

	mu     sync.Mutex
	writes []history.Write
}

// writeHeader has what is written: a body could be cut off where its process is stopped.
const writeHeader = "Lab-Write"

// serveGuarded begins to serve. The function guard puts a guard before it; nil: package httpguard.
func serveGuarded(guard func(http.Handler) http.Handler) (*guarded, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if guard == nil {
		guard = func(next http.Handler) http.Handler {
			return httpguard.New(next, func(r *http.Request) string { return r.URL.Path }, nil)
		}
	}
	g := &guarded{url: "http://" + l.Addr().String()}
	g.server = &http.Server{Handler: guard(g)}
	go g.server.Serve(l)
	return g, nil
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var one history.Write
	if err := json.Unmarshal([]byte(r.Header.Get(writeHeader)), &one); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, one)
}

// end stops serving, and returns what was accepted, in this order.
func (g *guarded) end() []history.Write {
	g.server.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.writes
}

var toGuard = http.Client{Transport: &httpguard.Transport{}}

// guard makes the write w with the token of a lease, which may be over. Unless the guard
// answers, nothing is known.
func (h *hammer) guard(lease *leasehold.Lease, w history.Write) {
	ctx, cancel := context.WithTimeout(httpguard.WithToken(context.Background(), lease.Token()), h.TTL)
	defer cancel()
	resource := fmt.Sprintf("%s/%d", h.Guard, w.Lock)
	if len(h.Kinds) > 0 && !h.Kinds[w.Lock].IsMutex() && !h.Kinds[w.Lock].Shared { // each permit has tokens of its own
		resource += fmt.Sprintf("/%d", w.Slot)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, resource, nil)
	if err != nil {
		h.fail(err)
		return
	}
	line, err := json.Marshal(w)
	if err != nil {
		h.fail(err)
		return
	}
	r.Header.Set(writeHeader, string(line))
	at := history.Now()
	answer, err := toGuard.Do(r)
	if err != nil {
		return
	}
	answer.Body.Close()
	h.note(history.Event{Op: history.Guarded, At: at, Done: history.Now(), N: w.By.N, Err: text(httpguard.Check(answer))})
}

// late makes a write now and then after the hold is over, as a holder does that was stopped.
func (h *hammer) late(of claim, lease *leasehold.Lease, attempt int) {
	if !h.chance(0.2) {
		return
	}
	time.Sleep(h.upTo(20 * time.Millisecond))
	w := h.written(of, lease, 0)
	w.By.N = attempt
	h.guard(lease, w)
}
