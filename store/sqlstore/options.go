package sqlstore

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Defaults of Options.
const (
	DefaultSchema  = "leasehold"
	DefaultTimeout = 5 * time.Second
)

// Options configure a Store. The zero value and nil are good defaults. What is set both here
// and in the URL must have the same value in both.
type Options struct {
	// Schema is the database schema of the table. In MySQL it is a database. Empty means
	// DefaultSchema.
	Schema string
	// MaxTTL is the longest TTL that the store accepts. Zero means any.
	MaxTTL time.Duration
	// Timeout bounds every call, except the time that Wait waits for the lock. Zero
	// means DefaultTimeout.
	Timeout time.Duration
	// Polls makes waiters look for the lock now and then, in place of a connection on which
	// PostgreSQL wakes them.
	Polls bool
	// Logger logs trouble that no caller learns of. Nil means no logging.
	Logger *slog.Logger
}

// checked returns o with its defaults.
func (o *Options) checked() (Options, error) {
	c := *cmp.Or(o, &Options{})
	if c.MaxTTL < 0 || c.Timeout < 0 {
		return c, fmt.Errorf("%w: MaxTTL %v, Timeout %v: neither may be negative", store.ErrInvalid, c.MaxTTL, c.Timeout)
	}
	var err error
	if c.Schema, err = schemaName(c.Schema); err != nil {
		return c, err
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c, nil
}

// schemaName returns schema, or the default, if it can be used without quotes.
func schemaName(schema string) (string, error) {
	if schema == "" {
		return DefaultSchema, nil
	}
	plain := len(schema) <= 63 && (schema[0] < '0' || schema[0] > '9')
	for _, r := range []byte(schema) {
		plain = plain && (r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z')
	}
	if !plain {
		return "", fmt.Errorf("%w: the schema %q: use at most 63 lower-case letters, digits and _, and no digit first", store.ErrInvalid, schema)
	}
	return schema, nil
}
