package conn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"runtime/debug"

	"golang.org/x/net/http2"

	"github.com/bowsprit/bowsprit/internal/front/conn/h2"
)

//lint:file-ignore SA1019 ConfigureServer prepares TLS for HTTP/2; the rest of net/http's server is not used

// serveDirect makes srv hand its HTTP/2 connections to package h2, with the limits of srv.
func (s *Server) serveDirect(srv *http.Server) error {
	if err := http2.ConfigureServer(srv, nil); err != nil { // of the TLS configuration
		return err
	}
	direct := h2.New(h2.Config{
		MaxStreams: srv.HTTP2.MaxConcurrentStreams, MaxHeaderBytes: srv.MaxHeaderBytes,
		MaxReadFrame: srv.HTTP2.MaxReadFrameSize, StreamWindow: srv.HTTP2.MaxReceiveBufferPerStream,
		ConnWindow: srv.HTTP2.MaxReceiveBufferPerConnection, Idle: srv.IdleTimeout, Quiet: srv.HTTP2.SendPingTimeout,
		Lost: srv.HTTP2.PingTimeout, Leave: leaveWait, Sending: s.config.Sending, Failed: s.failed,
	})
	srv.RegisterOnShutdown(direct.Shutdown)
	srv.TLSNextProto[http2.NextProtoTLS] = func(srv *http.Server, c *tls.Conn, h http.Handler) {
		s.freshConns.forget(c)
		socket, ok := c.NetConn().(*corked)
		if !ok {
			panic(fmt.Sprintf("conn: a connection below TLS is a %T", c.NetConn())) // Serve wraps all listeners
		}
		ctx := context.WithValue(s.config.Context, http.ServerContextKey, srv)
		direct.Serve(context.WithValue(ctx, http.LocalAddrContextKey, c.LocalAddr()), c, socket, &roomy{h})
	}
	return nil
}

// failed logs a panic of a handler. The steps of the chain recover from their own.
func (s *Server) failed(r *http.Request, value any) {
	s.config.Log.Error("A handler panicked; its response is incomplete", "remote", r.RemoteAddr, "panic", value,
		"stack", string(debug.Stack()))
}
