package memstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

func init() { store.Register("memory", open) }

// open implements store.OpenFunc. Every call returns a store of its own.
func open(_ context.Context, url string, _ store.OpenOptions) (*store.Store, error) {
	if rest := strings.TrimPrefix(strings.TrimSpace(url), "memory"); rest != "" && rest != ":" {
		return nil, fmt.Errorf("%w: a store in memory has no name and no settings: its URL is \"memory:\"", store.ErrInvalid)
	}
	return New(nil), nil
}
