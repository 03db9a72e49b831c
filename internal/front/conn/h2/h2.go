// Package h2 serves HTTP/2 connections (RFC 9113) to an http.Handler.
package h2
