package settings_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
)

type options struct {
	Prefix   string
	Password string
	Timeout  time.Duration
	Durable  bool
	Hosts    []string
	Logger   *slog.Logger
	hook     func()
}

func TestJoin(t *testing.T) {
	log := slog.Default()
	given := &options{Prefix: "a", Hosts: []string{"x"}, Logger: log, hook: func() {}}
	o, err := settings.Join(given, options{Prefix: "a", Timeout: time.Second, Durable: true, Hosts: []string{"x"}})
	if err != nil || o.Prefix != "a" || o.Timeout != time.Second || !o.Durable || o.Logger != log || o.hook == nil {
		t.Errorf("joined: %+v, %v", o, err)
	}
	if given.Durable {
		t.Error("the options of the program were changed")
	}
	if o, err := settings.Join(nil, options{Prefix: "b"}); err != nil || o.Prefix != "b" {
		t.Errorf("without options: %+v, %v", o, err)
	}
}

func TestContradictionIsNamedWithoutValues(t *testing.T) {
	_, err := settings.Join(&options{Password: "secret"}, options{Password: "hush"})
	if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "Password") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "hush") {
		t.Errorf("two passwords: %v, want an error that names the field alone", err)
	}
}
