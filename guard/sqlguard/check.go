package sqlguard

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/fence"
)

// ErrInvalid means that the call was refused before anything was sent.
var ErrInvalid = errors.New("sqlguard: invalid call")

// MaxResource is the longest name of a resource, in bytes.
const MaxResource = 1024

func check(resource string, token fence.Token) error {
	if err := checkResource(resource); err != nil {
		return err
	}
	if err := token.Check(); err != nil {
		return fmt.Errorf("%w: %q: %w", ErrInvalid, resource, err)
	}
	return nil
}

func checkResource(name string) error {
	if name == "" || len(name) > MaxResource {
		return fmt.Errorf("%w: the name of the resource has %d bytes: it needs 1 to %d", ErrInvalid, len(name), MaxResource)
	}
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%w: the name of the resource, %.40q, is not text that every database can keep: use UTF-8 without zero bytes", ErrInvalid, name)
	}
	return nil
}
