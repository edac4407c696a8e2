package config

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
)

// Invalid wraps an error that says what is wrong with a URL or with options, so that it
// matches store.ErrInvalid. Nil stays nil.
func Invalid(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", store.ErrInvalid, err)
}
