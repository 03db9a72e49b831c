// Package konnectivity is the common part of Konnectivity servers and agents: the protocol of
// sigs.k8s.io/apiserver-network-proxy, v0.34.
//
// A server (package server) stands beside the API server, which requests connections from it. Agents (package agent)
// run in the cluster, connect to all servers, and dial. Both sides exchange packets (client.Packet of the upstream
// module). An API server calls ProxyService.Proxy once for each connection. An agent calls AgentService.Connect once
// for each server, and all its connections share that call, identified by numbers of the agent.
package konnectivity

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// The metadata of AgentService.Connect: an agent sends the first two and the last, a server the others.
const (
	AgentIDHeader     = "agentid"
	IdentifiersHeader = "agentidentifiers"
	ServerIDHeader    = "serverid"
	ServerCountHeader = "servercount"
	TokenHeader       = "authorization" // "Bearer " and a token
)

// MaxData is the largest number of data bytes in a packet, as upstream.
const MaxData = 32 << 10

// The two sides of a call of Connect.
type (
	AgentStream  = grpc.BidiStreamingServer[client.Packet, client.Packet] // on the server
	ServerStream = grpc.BidiStreamingClient[client.Packet, client.Packet] // on the agent
)

// AgentService is the service for agents.
type AgentService interface{ Connect(AgentStream) error }

// agentService is its description. Upstream's generated code is in a module with some 700 dependencies.
var agentService = grpc.ServiceDesc{
	ServiceName: "AgentService",
	HandlerType: (*AgentService)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: "Connect", ServerStreams: true, ClientStreams: true,
		Handler: func(service any, stream grpc.ServerStream) error {
			return service.(AgentService).Connect(
				&grpc.GenericServerStream[client.Packet, client.Packet]{ServerStream: stream})
		},
	}},
	Metadata: "proto/agent/agent.proto",
}

// Register registers the service at a gRPC server.
func Register(s grpc.ServiceRegistrar, service AgentService) {
	s.RegisterService(&agentService, service)
}

// Connect calls a server as an agent.
func Connect(ctx context.Context, conn grpc.ClientConnInterface) (ServerStream, error) {
	stream, err := conn.NewStream(ctx, &agentService.Streams[0], "/AgentService/Connect")
	if err != nil {
		return nil, err
	}
	return &grpc.GenericClientStream[client.Packet, client.Packet]{ClientStream: stream}, nil
}

// Identifiers are the destinations that an agent is close to.
type Identifiers struct {
	Hosts        []string // names and addresses
	DefaultRoute bool     // whether it is the default for other destinations
}

// ParseIdentifiers parses --agent-identifiers: a URL's query with ipv4, ipv6, host, cidr and default-route. strict
// rejects other keys, which a server accepts from newer agents.
func ParseIdentifiers(text string, strict bool) (Identifiers, error) {
	var out Identifiers
	values, err := url.ParseQuery(text)
	if err != nil {
		return out, fmt.Errorf("fail to parse url encoded string: %w", err)
	}
	for kind, of := range values {
		switch kind {
		case "ipv4", "ipv6", "host":
			out.Hosts = append(out.Hosts, of...)
		case "default-route":
			out.DefaultRoute, _ = strconv.ParseBool(of[0])
		case "cidr": // no strategy uses it
		default:
			if strict {
				return out, fmt.Errorf("unknown address type: %s", kind)
			}
		}
	}
	return out, nil
}

// DialRequest requests a connection to an address. random identifies the response.
func DialRequest(address string, random int64) *client.Packet {
	return &client.Packet{Type: client.PacketType_DIAL_REQ, Payload: &client.Packet_DialRequest{
		DialRequest: &client.DialRequest{Protocol: "tcp", Address: address, Random: random},
	}}
}

// DialResponse is the response: the number of the connection, or the error.
func DialResponse(random, id int64, failure string) *client.Packet {
	return &client.Packet{Type: client.PacketType_DIAL_RSP, Payload: &client.Packet_DialResponse{
		DialResponse: &client.DialResponse{Random: random, ConnectID: id, Error: failure},
	}}
}

// DialClose cancels a request for a connection.
func DialClose(random int64) *client.Packet {
	return &client.Packet{Type: client.PacketType_DIAL_CLS, Payload: &client.Packet_CloseDial{
		CloseDial: &client.CloseDial{Random: random},
	}}
}

// Data carries bytes of a connection.
func Data(id int64, data []byte) *client.Packet {
	return &client.Packet{Type: client.PacketType_DATA, Payload: &client.Packet_Data{
		Data: &client.Data{ConnectID: id, Data: data},
	}}
}

// CloseRequest asks an agent to close a connection.
func CloseRequest(id int64) *client.Packet {
	return &client.Packet{Type: client.PacketType_CLOSE_REQ, Payload: &client.Packet_CloseRequest{
		CloseRequest: &client.CloseRequest{ConnectID: id},
	}}
}

// CloseResponse reports that a connection is closed.
func CloseResponse(id int64, failure string) *client.Packet {
	return &client.Packet{Type: client.PacketType_CLOSE_RSP, Payload: &client.Packet_CloseResponse{
		CloseResponse: &client.CloseResponse{ConnectID: id, Error: failure},
	}}
}

// Drain reports that an agent accepts no more connections.
func Drain() *client.Packet {
	return &client.Packet{Type: client.PacketType_DRAIN, Payload: &client.Packet_Drain{Drain: &client.Drain{}}}
}

// TypeName is the type of a packet as metrics show it. A number without a name is "Unknown": a peer chooses numbers,
// and each name is a series.
func TypeName(p *client.Packet) string {
	if name, ok := client.PacketType_name[int32(p.Type)]; ok {
		return name
	}
	return "Unknown"
}

// CodeName is the code of a call's error as metrics show it, "Unknown" for a number that gRPC does not have.
func CodeName(err error) string {
	if code := status.Code(err); code <= codes.Unauthenticated {
		return code.String()
	}
	return codes.Unknown.String()
}
