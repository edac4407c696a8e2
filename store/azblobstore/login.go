package azblobstore

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// login adds what proves who makes a request.
type login interface {
	authorize(ctx context.Context, method string, to *url.URL, header http.Header, length int) error
}

// entra logs in with a token of Microsoft Entra ID.
type entra struct{ azcore.TokenCredential }

const scope = "https://storage.azure.com/.default"

func (e entra) authorize(ctx context.Context, _ string, _ *url.URL, header http.Header, _ int) error {
	t, err := e.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	if err != nil {
		return recordstore.Refusal("there are no credentials: give the key of the account in AZURE_STORAGE_KEY, those of an application in AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, run \"az login\", or give the machine an identity: %w", err)
	}
	header.Set("Authorization", "Bearer "+t.Token)
	return nil
}

// sharedKey signs requests with the key of the account.
type sharedKey struct {
	account string
	key     []byte
}

func (k sharedKey) authorize(_ context.Context, method string, to *url.URL, header http.Header, length int) error {
	mac := hmac.New(sha256.New, k.key)
	mac.Write([]byte(k.text(method, to, header, length)))
	header.Set("Authorization", "SharedKey "+k.account+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}

// text returns what is signed, as "Authorize with Shared Key" in Azure's documentation says.
func (k sharedKey) text(method string, to *url.URL, header http.Header, length int) string {
	lines := []string{method, header.Get("Content-Encoding"), header.Get("Content-Language"), "", header.Get("Content-MD5"), header.Get("Content-Type"), ""}
	if length > 0 {
		lines[3] = strconv.Itoa(length)
	}
	for _, name := range []string{"If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"} {
		lines = append(lines, header.Get(name))
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			lines = append(lines, lower+":"+strings.TrimSpace(header.Get(name)))
		}
	}
	lines = append(lines, "/"+k.account+to.EscapedPath())
	query := to.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		lines = append(lines, strings.ToLower(name)+":"+strings.Join(slices.Sorted(slices.Values(query[name])), ","))
	}
	return strings.Join(lines, "\n")
}
