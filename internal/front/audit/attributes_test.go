package audit

import (
	"net/http"
	"slices"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/user"
)

// TestSourceIPsAreKubes compares with Kubernetes' library.
func TestSourceIPsAreKubes(t *testing.T) {
	t.Parallel()
	var known peers
	for _, remote := range []string{
		"192.0.2.1:1234", "[::1]:1234", "[::ffff:192.0.2.1]:1", "[fe80::1%eth0]:1", "010.0.0.1:1", "192.0.2.1", "@", "",
		"[2001:DB8::0:1]:6443",
	} {
		for _, forwarded := range []string{"", "10.0.0.1", "10.0.0.1, 10.0.0.2", "nobody"} {
			for _, real := range []string{"", "10.0.0.3"} {
				r := &http.Request{RemoteAddr: remote, Header: http.Header{}}
				if forwarded != "" {
					r.Header.Set("X-Forwarded-For", forwarded)
				}
				if real != "" {
					r.Header.Set("X-Real-Ip", real)
				}
				var want []string
				for _, ip := range utilnet.SourceIPs(r) {
					want = append(want, ip.String())
				}
				for _, when := range []string{"first", "again"} {
					if got := sourceIPs(&known, r); !slices.Equal(got, want) {
						t.Errorf("%q, %q, %q, %s: %v, want %v", remote, forwarded, real, when, got, want)
					}
				}
			}
		}
	}
}

// TestUsersAreRemembered checks that the JSON of each user is correct when more users than the cache holds make
// requests in turn.
func TestUsersAreRemembered(t *testing.T) {
	t.Parallel()
	var known users
	var all []*user.DefaultInfo
	for i := range 3 * len(known) {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26))
		all = append(all, &user.DefaultInfo{Name: name, Extra: map[string][]string{"of": {name}}})
	}
	for range 3 {
		for _, u := range all {
			got := knownInfo(&known, u)
			if got.info.Username != u.Name || got.info.Extra["of"][0] != u.Name ||
				string(got.json) != string(appendUser(nil, &got.info)) {
				t.Fatalf("%s is written as %+v, %s", u.Name, got.info, got.json)
			}
		}
	}
}
