package conn

import (
	"context"
	"crypto/tls"
	"net/http"

	"golang.org/x/net/http2"
)

//lint:file-ignore SA1019 net/http takes TLS connections of its own type only, and gathering writes needs another

// serveHTTP2 makes srv's HTTP/2 connections gather their writes. golang.org/x/net/http2 is the server inside net/http,
// but accepts connections of any type.
func (s *Server) serveHTTP2(srv *http.Server) error {
	h2 := &http2.Server{}
	if err := http2.ConfigureServer(srv, h2); err != nil {
		return err
	}
	srv.TLSNextProto[http2.NextProtoTLS] = func(srv *http.Server, c *tls.Conn, h http.Handler) {
		s.freshConns.forget(c)
		ctx := context.Background()
		// How net/http hands over the context of a connection to an HTTP/2 server.
		if base, ok := h.(interface{ BaseContext() context.Context }); ok {
			ctx = base.BaseContext()
		}
		h2.ServeConn(newGatherer(c, s.config.Sending),
			&http2.ServeConnOpts{Context: ctx, Handler: &roomy{h}, BaseConfig: srv})
	}
	return nil
}
