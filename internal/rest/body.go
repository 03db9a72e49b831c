package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxBody is the largest request body, as in kube-apiserver: twice the largest value in etcd.
const maxBody = 3 << 20

// readBody reads a request's body up to maxBody bytes.
func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return nil, bodyTooLarge(maxBody)
	}
	buf := make([]byte, 0, max(r.ContentLength, 512))
	limited := io.LimitReader(r.Body, maxBody+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := limited.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if len(buf) > maxBody {
			return nil, bodyTooLarge(maxBody)
		}
		switch {
		case err == io.EOF:
			return buf, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, apierrors.NewBadRequest("the request body ended before its declared length: unexpected EOF")
		case err != nil:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("read the request body: %v", err))
		}
	}
}
