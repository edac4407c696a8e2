// Package settings joins what a URL says about a store with the options that the program
// gives.
package settings

import (
	"fmt"
	"reflect"

	"github.com/leasehold-dev/leasehold/store"
)

// Join returns the options of the program, which may be nil, with the exported fields that
// only the URL sets. If a field is set in both and differs, the error matches
// store.ErrInvalid. It names the field and not its values, which may be secret.
func Join[O any](given *O, url O) (O, error) {
	if given == nil {
		return url, nil
	}
	joined := *given
	is, says := reflect.ValueOf(&joined).Elem(), reflect.ValueOf(url)
	for i := range is.NumField() {
		field, of, by := is.Type().Field(i), is.Field(i), says.Field(i)
		switch {
		case !field.IsExported() || by.IsZero():
		case of.IsZero():
			of.Set(by)
		case !reflect.DeepEqual(of.Interface(), by.Interface()):
			return joined, fmt.Errorf("%w: the URL and the options set %s to different values: give it once", store.ErrInvalid, field.Name)
		}
	}
	return joined, nil
}
