package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// TestLongTTLNamesTheSetting checks that the error for a TTL that is too long names the
// setting to change.
func TestLongTTLNamesTheSetting(t *testing.T) {
	c := store.Caps{MaxTTL: time.Minute}
	if err := c.CheckTTL(time.Minute); err != nil {
		t.Error(err)
	}
	if err := c.CheckTTL(2 * time.Minute); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "max_ttl") || !strings.Contains(err.Error(), "1m0s") {
		t.Error(err)
	}
}
