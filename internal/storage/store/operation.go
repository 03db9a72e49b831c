package store

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// modified is the condition on the mod revision of a key, which is 0 while the key does not exist.
func modified(key string, is pb.Compare_CompareResult, rev int64) *pb.Compare {
	return &pb.Compare{
		Key: []byte(key), Target: pb.Compare_MOD, Result: is,
		TargetUnion: &pb.Compare_ModRevision{ModRevision: rev},
	}
}

// put writes a key under a lease; 0 means no lease.
func put(key string, value []byte, lease int64) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte(key), Value: value, Lease: lease},
	}}
}

// remove deletes a key.
func remove(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)},
	}}
}

// look reads the revisions of a key, without its value.
func look(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
		RequestRange: &pb.RangeRequest{Key: []byte(key), KeysOnly: true},
	}}
}
