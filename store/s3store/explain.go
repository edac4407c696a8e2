package s3store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// answer returns the answer of the server that err is about, or nil.
func answer(err error) *http.Response {
	var res *awshttp.ResponseError
	if errors.As(err, &res) && res.Response != nil {
		return res.Response.Response
	}
	return nil
}

// code returns the server's word for an error, such as SlowDown.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func isAbsent(err error) bool { return code(err) == "NoSuchKey" }

// brief is an error of the SDK in fewer words.
type brief struct {
	text string
	err  error
}

func (b *brief) Error() string { return b.text }
func (b *brief) Unwrap() error { return b.err }

func shorten(err error) error {
	var api smithy.APIError
	var res *awshttp.ResponseError
	var send *smithyhttp.RequestSendError
	switch {
	case errors.As(err, &res) && errors.As(err, &api):
		return &brief{fmt.Sprintf("%d %s: %s (request %s)", res.HTTPStatusCode(), store.Excerpt(api.ErrorCode()), store.Excerpt(api.ErrorMessage()), store.Excerpt(res.ServiceRequestID())), err}
	case errors.As(err, &send):
		return &brief{send.Err.Error(), err}
	}
	return err
}

// explain returns err as recordstore understands it.
func explain(err error) error {
	res := answer(err)
	err = shorten(err)
	if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) {
		return recordstore.Refusal("%w: trust its certificate in AWS_CA_BUNDLE", err)
	}
	if res == nil {
		return err
	}
	switch s := res.StatusCode; {
	// 409: another write of the object is under way. 404: the object to replace was deleted.
	case s == http.StatusPreconditionFailed, s == http.StatusConflict, isAbsent(err):
		return fmt.Errorf("%w: %w", recordstore.ErrConflict, err)
	case s == http.StatusRequestTimeout, s == http.StatusTooManyRequests:
	case code(err) == "RequestTimeTooSkewed", code(err) == "ExpiredToken", code(err) == "RequestTimeout": // the next request has another time or other credentials
	case s == http.StatusNotImplemented, s >= 300 && s < 500:
		return recordstore.Refusal("%w", err)
	}
	return err
}
