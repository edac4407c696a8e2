package stories

import (
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/leasehold-dev/leasehold/fence"
)

// resource is what the lock protects: something that keeps the last value
// written to it, over HTTP. With a guard it remembers the largest fencing token
// it has seen, and refuses smaller ones.
type resource struct {
	s       *stage
	url     string
	addr    string
	guarded bool

	mu      sync.Mutex
	highest fence.Token
	value   string
	heard   map[fence.Token]bool // writes that arrived, accepted or not
}

// resource starts one.
func (s *stage) resource(guarded bool) *resource {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.check(err)
	r := &resource{s: s, addr: l.Addr().String(), guarded: guarded && !s.config.unguarded, heard: map[fence.Token]bool{}}
	r.url = "http://" + r.addr
	server := &http.Server{Handler: r}
	var done sync.WaitGroup
	done.Go(func() { server.Serve(l) })
	s.atEnd(func() {
		server.Close()
		done.Wait()
	})
	return r
}

// ServeHTTP is a write.
func (r *resource) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	token, err := strconv.ParseUint(req.FormValue("token"), 10, 64)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case !r.write(req.FormValue("value"), fence.Token(token)):
		http.Error(w, "a newer token was here", http.StatusConflict)
	}
}

// write writes, and says whether it was accepted.
func (r *resource) write(value string, token fence.Token) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard[token] = true
	if !r.guarded {
		r.value = value
		r.s.does("resource", "is %s", value)
		return true
	}
	highest, err := fence.Admit("resource", r.highest, token)
	if err != nil {
		r.s.does("resource", "refuses what was %s: token %v is older than %v", value, token, r.highest)
		return false
	}
	r.highest, r.value = highest, value
	r.s.does("resource", "is %s, token %v", value, token)
	return true
}

// has is the value it has now.
func (r *resource) has() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value
}

// arrived reports whether a write with that token came, accepted or not.
func (r *resource) arrived(token fence.Token) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard[token]
}
