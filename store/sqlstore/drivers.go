package sqlstore

import (
	"database/sql"
	"fmt"
	"net/url"
	"slices"

	"github.com/leasehold-dev/leasehold/store"
)

// imported returns the first of the drivers that is part of the program.
func imported(drivers ...string) string {
	known := sql.Drivers()
	for _, one := range drivers {
		if slices.Contains(known, one) {
			return one
		}
	}
	return ""
}

// missingDriver is the error for a program without a driver.
func missingDriver(e engine, path string) error {
	return fmt.Errorf("%w: no driver for %s is part of this program: add import _ %q", store.ErrUnsupported, e.name(), path)
}

// setDefault sets a setting that the URL does not set.
func setDefault(q url.Values, name, value string) {
	if !q.Has(name) {
		q.Set(name, value)
	}
}
