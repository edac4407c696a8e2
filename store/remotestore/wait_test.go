package remotestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/remotestore"
)

// A server that ends takes back what a waiter has begun there, and says so before it has. The waiter goes
// on with another owner, or that server would take back what another one grants it meanwhile.
func TestWaiterOfAServerThatEnds(t *testing.T) {
	owners := make(chan string, 2)
	serve := func(last httpapi.Event) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/store" {
				json.NewEncoder(w).Encode(httpapi.Caps{Engine: "test", Nodes: 1, Quorum: 1, Class: "efficiency"})
				return
			}
			var q httpapi.Request
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				t.Error(err)
			}
			owners <- q.Owner
			if last.Grant != nil {
				last.Grant.Owner = q.Owner
			}
			json.NewEncoder(w).Encode(last)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	ending := serve(httpapi.Event{Event: "leaving", Problem: httpapi.New(httpapi.Closing, "the server is about to end")})
	other := serve(httpapi.Event{Event: "held", Grant: &httpapi.Grant{Token: 7, Valid: httpapi.SpanOf(time.Minute)}})
	st, err := remotestore.Open(t.Context(), ending+" "+other, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	l := store.Lease{Name: "a", Owner: store.NewOwnerAt(time.Now()), TTL: time.Minute}
	g, err := st.Wait(t.Context(), store.WaitRequest{Lease: l}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second := <-owners, <-owners
	if first != l.Owner || second == first || store.Rank(second) != store.Rank(first) || g.Lease.Owner != second {
		t.Errorf("the owner was %q, then %q, and that of the grant is %q: want another one of the same rank", first, second, g.Lease.Owner)
	}
}

// The error of a call whose time ends before a server has answered names the server.
func TestNoAnswerBeforeTheCallEnds(t *testing.T) {
	asked := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/store" {
			json.NewEncoder(w).Encode(httpapi.Caps{Engine: "test", Nodes: 1, Quorum: 1, Class: "efficiency"})
			return
		}
		io.Copy(io.Discard, r.Body) // so that the server notices the end of the connection
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	st, err := remotestore.Open(t.Context(), s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	err = st.Release(ctx, store.ReleaseRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}})
	if host := strings.TrimPrefix(s.URL, "http://"); !errors.Is(err, context.Canceled) || !errors.Is(err, store.ErrAmbiguous) || !strings.Contains(err.Error(), `release "a": `+host) {
		t.Errorf("error is %v: want one that names %s", err, host)
	}
}
