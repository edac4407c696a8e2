package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"testing"
)

// A row of a driver is scanned as database/sql scans it, whether the driver returns numbers as
// such or as text.
func TestScanRowOfADriver(t *testing.T) {
	type dest struct {
		text     string
		yes      bool
		small    int
		big      int64
		null     sql.NullInt64
		absent   sql.NullString
		reserved hexadecimal
	}
	want := dest{"busy", true, 7, 1 << 60, sql.NullInt64{Int64: 5, Valid: true}, sql.NullString{}, "\x00x"}
	for name, row := range map[string]driverRow{
		"values":  {"busy", true, int64(7), int64(1 << 60), int64(5), nil, "0078"},
		"text":    {[]byte("busy"), []byte("1"), []byte("7"), []byte("1152921504606846976"), []byte("5"), nil, []byte("0078")},
		"numbers": {"busy", int64(1), int64(7), int64(1 << 60), int64(5), nil, "0078"},
	} {
		var got dest
		if err := row.Scan(&got.text, &got.yes, &got.small, &got.big, &got.null, &got.absent, &got.reserved); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// A row that does not fit is an error.
func TestScanRowThatDoesNotFit(t *testing.T) {
	var n int64
	var s string
	for name, c := range map[string]struct {
		row  driverRow
		dest []any
	}{
		"too few columns": {driverRow{}, []any{&n}},
		"null":            {driverRow{nil}, []any{&n}},
		"no number":       {driverRow{"x"}, []any{&n}},
		"another type":    {driverRow{driver.Value(int64(1))}, []any{&struct{}{}}},
		"null text":       {driverRow{nil}, []any{&s}},
	} {
		if err := c.row.Scan(c.dest...); err == nil {
			t.Errorf("%s: no error, want one", name)
		}
	}
}
