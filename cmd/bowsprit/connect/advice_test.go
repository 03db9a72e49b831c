package connect_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// TestAdvise checks that the errors of wrong servers and missing rights get a remedy, and keep their text and type.
func TestAdvise(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"get a new kubeconfig": &url.Error{Op: "Get", URL: "https://a", Err: x509.UnknownAuthorityError{}},
		"name of the server's certificate": &url.Error{
			Op: "Get", URL: "https://a", Err: x509.HostnameError{Host: "a", Certificate: &x509.Certificate{}},
		},
		"does not accept the credentials": apierrors.NewUnauthorized("no"),
		`"bowsprit why-denied"`:           apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil),
		"":                                errors.New("other"),
	} {
		wrapped := fmt.Errorf("list: %w", err)
		got := connect.Advise(wrapped)
		if !strings.HasPrefix(got.Error(), wrapped.Error()) || !strings.Contains(got.Error(), want) ||
			!errors.Is(got, wrapped) || want == "" && got != wrapped {
			t.Errorf("%v", got)
		}
	}
	if connect.Advise(nil) != nil {
		t.Error("no error got advice")
	}
}
