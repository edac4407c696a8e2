package httpguard

import (
	"context"
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold/fence"
)

// With a Memory, the gate forgets unused resources. Without one, it forgets none.
func TestGateForgetsUnusedResources(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, forget := range []bool{true, false} {
		g := gate{forget: forget, resources: map[string]*entrance{}}
		for _, resource := range []string{"a", "b", "c"} {
			if err := g.enter(t.Context(), resource, 5); err != nil {
				t.Fatal(err)
			}
			if err := g.enter(ended, resource, 4); !errors.Is(err, fence.ErrStale) {
				t.Errorf("token 4 after 5: %v, want %v", err, fence.ErrStale)
			}
			if err := g.enter(ended, resource, 6); !errors.Is(err, context.Canceled) {
				t.Errorf("token 6 beside 5: %v, want %v", err, context.Canceled)
			}
			if len(g.resources) == 0 {
				t.Error("the gate has no resources while a handler is inside, want one")
			}
			g.leave(resource)
		}
		want := map[bool]int{true: 0, false: 3}[forget]
		if len(g.resources) != want {
			t.Errorf("forget=%v: %d resources are kept, want %d", forget, len(g.resources), want)
		}
	}
}
