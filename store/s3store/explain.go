package s3store

import (
	"errors"
	"fmt"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

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

// explain returns err as recordstore understands it.
func explain(err error) error {
	res := answer(err)
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
		return fmt.Errorf("%w: %w", recordstore.ErrRefused, err)
	}
	return err
}
