package azblobstoretest

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/objectstest"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
)

// emulatorVar names the program azurite-blob. "make azure" installs it.
const emulatorVar = "LEASEHOLD_AZURITE"

// The account that every Azurite has, and its key, which are in its documentation.
const (
	account   = "devstoreaccount1"
	key       = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	container = "locks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(child.Goroutine)) }

// start starts a server with a container, and ends it with the test. One that is lasting keeps what
// it knows of blobs in a database, where transactions that conflict fail, and their content in files.
// Otherwise Azurite keeps all in memory, and would write it to a file once in five seconds.
func start(t testing.TB, lasting bool) *objectstest.Server {
	t.Helper()
	program := os.Getenv(emulatorVar)
	if program == "" {
		t.Skip(emulatorVar + ` does not name the program azurite-blob: "make azure" installs it`)
	}
	keep, env := []string{"--inMemoryPersistence"}, os.Environ()
	if lasting {
		db, err := sqltest.LaunchMariaDB("transaction-isolation=SERIALIZABLE")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		keep, env = []string{"--location", t.TempDir()}, append(env, "AZURITE_DB=mysql://"+db.User+":"+db.Password+"@"+db.Addr+"/"+db.Database)
	}
	return objectstest.Launch(t, func(address string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(address)
		cmd := exec.Command(program, append(keep, "--blobHost", host, "--blobPort", port, "--silent", "--skipApiVersionCheck", "--disableTelemetry")...)
		cmd.Env = env
		return cmd
	}, func(url string) bool {
		defer http.DefaultClient.CloseIdleConnections()
		_, err := do(t.Context(), http.DefaultClient, http.MethodPut, url+"/"+account+"/"+container+"?restype=container", "", nil)
		return err == nil || strings.HasPrefix(err.Error(), "409")
	})
}

// do makes a request with the key, and returns the header of the answer.
func do(ctx context.Context, client *http.Client, method, url, body string, header http.Header) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("x-ms-version", "2023-11-03")
	sign(req)
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = errors.New(res.Status)
	}
	return res.Header, err
}

// sign signs a request with the key.
func sign(r *http.Request) {
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	lines := []string{r.Method, "", "", "", "", r.Header.Get("Content-Type"), "", "", r.Header.Get("If-Match"), r.Header.Get("If-None-Match"), "", ""}
	if r.ContentLength > 0 {
		lines[3] = strconv.FormatInt(r.ContentLength, 10)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			lines = append(lines, lower+":"+r.Header.Get(name))
		}
	}
	lines = append(lines, "/"+account+r.URL.EscapedPath())
	query := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		lines = append(lines, name+":"+query.Get(name))
	}
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join(lines, "\n")))
	r.Header.Set("Authorization", "SharedKey "+account+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// byHand writes blobs with plain requests.
func byHand(t testing.TB, endpoint string) objectstest.Hand {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(client.CloseIdleConnections)
	url := endpoint + "/" + account + "/" + container + "/"
	return objectstest.Hand{
		Write: func(ctx context.Context, name, version string) (string, error) {
			header := http.Header{"X-Ms-Blob-Type": {"BlockBlob"}, "If-None-Match": {"*"}}
			if version != "" {
				header = http.Header{"X-Ms-Blob-Type": {"BlockBlob"}, "If-Match": {version}}
			}
			answer, err := do(ctx, client, http.MethodPut, url+name, rand.Text(), header)
			return answer.Get("ETag"), err
		},
		Delete: func(ctx context.Context, name string) error {
			_, err := do(ctx, client, http.MethodDelete, url+name, "", nil)
			return err
		},
	}
}
