package proxy

import (
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// guard refuses requests of web pages other than the proxy's own. The proxy adds the user's credentials to each
// request, so it must refuse pages of other sites and of other ports of this machine. Browsers name the page in headers
// that no script can set: Origin (Fetch standard, section 3.2), Sec-Fetch-Site (Fetch Metadata Request Headers, section
// 2.3) and Referer. A request without these headers is from a program, or from a browser older than 2023 that loads an
// image or follows a link without a Referer.
type guard struct {
	hosts   []*regexp.Regexp // of --accept-hosts: a page can give its own name the address of this machine
	origins []*regexp.Regexp // of --accept-origins
	pods    *pods
	next    http.Handler
}

const (
	refusedHost = "Forbidden: --accept-hosts does not match the Host header of this request"
	refusedPage = "Forbidden: this request comes from a web page of another origin, which may not act as the user of this " +
		"proxy. To follow a link, copy the address into the browser; to allow an origin, use --accept-origins"
)

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isolated := g.pods.isolates(r.Host)
	switch {
	case !isolated && !g.accepts(hostname(r.Host)):
		refuse(w, refusedHost)
	case !g.ours(r) && !(isolated && navigates(r)): // only its visitors learn the name of an isolated host
		refuse(w, refusedPage)
	case isolated:
		g.pods.serve(w, r, g.next)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// accepts reports whether --accept-hosts matches the name of a host. Its default has IPv6 addresses in brackets.
func (g *guard) accepts(name string) bool {
	return matches(g.hosts, name) || strings.Contains(name, ":") && matches(g.hosts, "["+name+"]")
}

// ours reports whether no header of the request names a page of another origin.
func (g *guard) ours(r *http.Request) bool {
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		if !slices.ContainsFunc(origins, func(o string) bool { return !sameHost(o, r.Host) }) {
			return g.ownSite(r)
		}
		return len(origins) == 1 && matches(g.origins, origins[0])
	}
	if len(r.Header.Values("Sec-Fetch-Site")) > 0 {
		return g.ownSite(r)
	}
	for _, page := range r.Header.Values("Referer") {
		if !sameHost(page, r.Host) && !matches(g.origins, originOf(page)) {
			return false
		}
	}
	return true
}

// ownSite reports whether each Sec-Fetch-Site names the proxy's own page, or an address that the user typed.
func (*guard) ownSite(r *http.Request) bool {
	return !slices.ContainsFunc(r.Header.Values("Sec-Fetch-Site"), func(site string) bool {
		return site != "same-origin" && site != "none"
	})
}

// navigates reports whether a browser opens an address as a page, in a tab or in a frame.
func navigates(r *http.Request) bool {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	return read && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Origin") == ""
}

// sameHost reports whether an origin or an address has this host and port. The scheme may differ: a proxy that ends TLS
// may stand before this one.
func sameHost(address, host string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(withoutDefault(u), host)
}

// withoutDefault returns the host and port of a URL as a browser writes them into the header Host.
func withoutDefault(u *url.URL) string {
	if port := u.Port(); port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		return strings.TrimSuffix(u.Host, ":"+port)
	}
	return u.Host
}

// originOf returns the origin of a page, or "".
func originOf(page string) string {
	u, err := url.Parse(page)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func matches(expressions []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(expressions, func(re *regexp.Regexp) bool { return re.MatchString(text) })
}

// hostname returns a header Host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

func refuse(w http.ResponseWriter, why string) {
	http.Error(w, why, http.StatusForbidden)
}
