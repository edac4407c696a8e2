package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// The error for a TTL that is too long names the setting to change, and its value.
func TestLongTTLNamesTheSetting(t *testing.T) {
	c := store.Caps{MaxTTL: time.Minute}
	if err := c.CheckTTL(time.Minute); err != nil {
		t.Errorf("a TTL of the maximum: %v", err)
	}
	if err := c.CheckTTL(2 * time.Minute); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "max_ttl") || !strings.Contains(err.Error(), "1m0s") {
		t.Errorf("a TTL above the maximum: %v, want ErrInvalid that names max_ttl and 1m0s", err)
	}
}
