package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// pods separates the pages of pods, services and nodes from the API. A page that the API server fetches from a pod
// (.../pods/NAME/proxy/) would have the origin of this proxy, and its scripts could act as the user. So a browser that
// opens such an address is redirected to the same path of another host: a name below localhost, which browsers resolve
// to this machine (RFC 6761, section 6.3). That host serves only this pod. Its name cannot be guessed, so a page of
// another site cannot open it either.
//
// All other responses of the API forbid scripts (the directive sandbox of Content Security Policy), for browsers
// without such names and for servers behind an APIService.
type pods struct {
	prefix string // of the API, as "/" or "/k8s/"
	key    [sha256.Size]byte
}

// isolatedHost is a name of a pod's host.
var isolatedHost = regexp.MustCompile(`^proxied-[0-9a-f]{32}\.localhost$`)

// proxiedPath is the path of a pod, a service or a node behind the API server's proxy.
var proxiedPath = regexp.MustCompile(`^/api/v1/(?:namespaces/[^/]+/(?:pods|services)|nodes)/[^/]+/proxy(?:/|$)`)

func newPods(prefix string) *pods {
	p := &pods{prefix: prefix}
	if strings.HasPrefix(prefix, "/api") { // kubectl proxy does not cut such a prefix off
		p.prefix = "/"
	}
	rand.Read(p.key[:]) // never fails
	return p
}

// isolates reports whether a header Host names a pod's host.
func (*pods) isolates(host string) bool {
	return isolatedHost.MatchString(strings.ToLower(hostname(host)))
}

// host returns the host of the pod in a path, or "".
func (p *pods) host(path string) string {
	rest, ok := strings.CutPrefix(path, p.prefix)
	target := proxiedPath.FindString("/" + rest)
	if !ok || target == "" || slices.Contains(strings.Split(path, "/"), "..") {
		return ""
	}
	mac := hmac.New(sha256.New, p.key[:])
	mac.Write([]byte(strings.TrimSuffix(target, "/")))
	return "proxied-" + hex.EncodeToString(mac.Sum(nil)[:16]) + ".localhost"
}

// apart returns api with the pages of pods apart from it: a browser that opens one is sent to the pod's host, and other
// answers may not run scripts.
func (p *pods) apart(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.isolates(r.Host) {
			api.ServeHTTP(w, r)
			return
		}
		name, port, err := net.SplitHostPort(r.Host)
		host := p.host(r.URL.Path)
		if host != "" && err == nil && navigates(r) && (name == "localhost" || isLoopback(name)) {
			redirect(w, r, net.JoinHostPort(host, port))
			return
		}
		w.Header().Set("Content-Security-Policy", "sandbox")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		api.ServeHTTP(w, r)
	})
}

// serve answers a request to a pod's host. A browser with the name of an earlier run gets the present one.
func (p *pods) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	switch host := p.host(r.URL.Path); {
	case host != "" && strings.EqualFold(host, hostname(r.Host)):
		next.ServeHTTP(w, r)
	case host != "" && navigates(r) && r.Header.Get("Sec-Fetch-Site") == "none":
		_, port, _ := net.SplitHostPort(r.Host)
		redirect(w, r, net.JoinHostPort("localhost", port))
	default:
		refuse(w, "Forbidden: this host serves only the paths of one pod, service or node")
	}
}

// redirect sends a client to the same path of another host. The next run of the proxy has other names.
func redirect(w http.ResponseWriter, r *http.Request, host string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, "http://"+host+r.URL.RequestURI(), http.StatusTemporaryRedirect)
}
