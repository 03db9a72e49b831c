package attack

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/hostile"
)

// TestLargeKeys sends a certificate signing request whose signature would take hours to check.
func TestLargeKeys(t *testing.T) {
	t.Parallel()
	mallory := as(t, victim(t), "")
	request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: hostile.Request(4_000_000)})
	code, status := mallory.ask(t, http.MethodPost, "/apis/certificates.k8s.io/v1/certificatesigningrequests",
		"application/json", fmt.Sprintf(`{"metadata":{"name":"x"},"spec":{"signerName":"a.example.com/b",`+
			`"usages":["client auth"],"request":%q}}`, base64.StdEncoding.EncodeToString(request)))
	if code != http.StatusUnprocessableEntity || status.Details == nil || len(status.Details.Causes) != 1 ||
		status.Details.Causes[0].Field != "spec.request" { // the message ends within the large value
		t.Errorf("got %d %.500s", code, status.Message)
	}
}
