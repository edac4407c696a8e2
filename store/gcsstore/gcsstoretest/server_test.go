package gcsstoretest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/objectstest"
)

// The test program is the server as well, if serverVar names its address and the directory of its
// objects.
const serverVar = "LEASEHOLD_TEST_GCS_SERVER"

func TestMain(m *testing.M) {
	if address, dir, ok := strings.Cut(os.Getenv(serverVar), " "); ok {
		fmt.Fprintln(os.Stderr, serve(address, dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(child.Goroutine), goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"))
}

const bucket = "locks"

func emulator(dir string) (*fakestorage.Server, error) {
	e, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, Writer: io.Discard, StorageRoot: dir})
	if err == nil {
		e.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: bucket})
	}
	return e, err
}

// serve runs a server until the process is killed.
func serve(address, dir string) error {
	e, err := emulator(dir)
	if err != nil {
		return err
	}
	return http.ListenAndServe(address, e.HTTPHandler())
}

// start starts a server with a bucket, and ends it with the test. One that is lasting is a process
// of its own, and keeps its objects in files.
func start(t testing.TB, lasting bool) *objectstest.Server {
	t.Helper()
	if !lasting {
		e, err := emulator("")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Stop)
		return objectstest.Inside(t, e.HTTPHandler())
	}
	dir := t.TempDir()
	return objectstest.Launch(t, func(address string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), serverVar+"="+address+" "+dir)
		return cmd
	}, func(url string) bool {
		defer http.DefaultClient.CloseIdleConnections()
		res, err := http.Get(url + "/storage/v1/b/" + bucket)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// byHand writes objects with plain requests.
func byHand(t testing.TB, endpoint string) objectstest.Hand {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(client.CloseIdleConnections)
	do := func(ctx context.Context, method, path, body string) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, method, endpoint+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		res, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode >= 300 {
			err = errors.New(res.Status)
		}
		return answer, err
	}
	return objectstest.Hand{
		Write: func(ctx context.Context, name, version string) (string, error) {
			query := url.Values{"uploadType": {"media"}, "ifGenerationMatch": {cmp.Or(version, "0")}, "name": {name}}
			answer, err := do(ctx, http.MethodPost, "/upload/storage/v1/b/"+bucket+"/o?"+query.Encode(), rand.Text())
			if err != nil {
				return "", err
			}
			var o struct{ Generation string }
			err = json.Unmarshal(answer, &o)
			return o.Generation, err
		},
		Delete: func(ctx context.Context, name string) error {
			_, err := do(ctx, http.MethodDelete, "/storage/v1/b/"+bucket+"/o/"+url.PathEscape(name), "")
			return err
		},
	}
}
