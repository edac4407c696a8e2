package managertest_test

import (
	"log/slog"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.FromSlogHandler(slog.DiscardHandler)) // or it complains that it has none
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())         // client-go starts some at once
}
