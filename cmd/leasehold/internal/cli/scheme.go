package cli

import (
	"context"

	"github.com/leasehold-dev/leasehold/store"
)

// scheme is one kind of store that a URL can name, as far as the command describes
// it. store.Open opens it.
type scheme struct {
	names []string
	usage string // how to write it, in the help
	help  string
	// single: one URL names the whole store.
	single bool
	// refused says why the command does not open such a store; nil: it does.
	refused error
}

// open opens the store that a URL of the scheme names.
func (s scheme) open(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
	if s.refused != nil {
		return nil, s.refused
	}
	return store.Open(ctx, url, &o)
}
