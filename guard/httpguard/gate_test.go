package httpguard

import (
	"context"
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold/fence"
)

// The gate forgets unused resources if a Memory remembers their tokens, and those that
// accepted none.
func TestGateForgetsUnusedResources(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		memory, accept, saved bool
		want                  int
	}{
		{true, true, true, 0}, {true, true, false, 3}, {true, false, false, 0},
		{false, true, true, 3}, {false, false, false, 0},
	} {
		g := gate{forget: c.memory, grace: DefaultGrace, resources: map[string]*entrance{}}
		for _, resource := range []string{"a", "b", "c"} {
			v := &visit{resource: resource, token: 5}
			if err := g.enter(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			if c.accept {
				g.accept(resource, 5, c.saved)
				if err := g.enter(t.Context(), &visit{resource: resource, token: 4}); !errors.Is(err, fence.ErrStale) {
					t.Errorf("token 4 after 5: %v, want %v", err, fence.ErrStale)
				}
			}
			if err := g.enter(ended, &visit{resource: resource, token: 6}); !errors.Is(err, context.Canceled) {
				t.Errorf("token 6 beside 5: %v, want %v", err, context.Canceled)
			}
			if len(g.resources) == 0 {
				t.Error("the gate has no resources while a handler is inside, want one")
			}
			g.leave(v)
		}
		if len(g.resources) != c.want {
			t.Errorf("%+v: %d resources are kept, want %d", c, len(g.resources), c.want)
		}
	}
}
