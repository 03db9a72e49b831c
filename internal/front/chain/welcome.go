package chain

import (
	"bytes"
	"html/template"
	"net/http"
	"strings"
	"sync"
)

// welcome serves a page to browsers at the server's root. It shows only facts from /version and the TLS handshake, so
// it needs no permission. Other clients do not accept HTML.
func (c *Chain) welcome(x *exchange, next func(*exchange)) {
	read := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	if x.info.Path != "/" || !read || !strings.Contains(x.r.Header.Get("Accept"), "text/html") {
		next(x)
		return
	}
	var body bytes.Buffer
	if err := welcomePage().Execute(&body, c.config.Version); err != nil {
		panic(err) // a struct of strings
	}
	header := x.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Vary", "Accept")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	_, _ = x.Write(body.Bytes())
}

// welcomePage renders a version.Info. It is parsed on first use.
var welcomePage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("welcome").Parse(welcomeText))
})

const welcomeText = `<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>Bowsprit</title>
<style>body { font: 16px/1.5 sans-serif; margin: 3em auto; max-width: 42em; padding: 0 1em } pre { background: #eee; padding: 1em }</style>
<h1>Bowsprit</h1>
<p>This is a Kubernetes API server, version {{.GitVersion}}. It is for kubectl and other clients of Kubernetes, not for browsers.</p>
<p>On the machine that it runs on:</p>
<pre>bowsprit kubeconfig --merge
kubectl --context=bowsprit get namespaces</pre>
<p>From elsewhere, copy the output of <code>bowsprit kubeconfig</code>; set its <code>server</code> to this address.</p>
<h2>The certificate warning</h2>
<p>Unless it was started with <code>--tls-cert-file</code>, the server signs its own certificate. Clients trust it through the
<code>certificate-authority-data</code> of the kubeconfig. For a browser, import <code>pki/ca.crt</code> of the server's data directory as
an authority.</p>
</html>
`
