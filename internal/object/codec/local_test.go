package codec

import (
	"net/http/httptest"
	"testing"
)

func TestLocalClientsGetPlainBytes(t *testing.T) {
	for address, want := range map[string]bool{
		"192.0.2.1:1234": true, "127.0.0.1:1234": false, "[::1]:1234": false, "": true,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = address
		r.Header.Set("Accept-Encoding", "gzip")
		if got := acceptsGzip(r); got != want {
			t.Errorf("client at %q: compress = %v, want %v", address, got, want)
		}
	}
}
