package redigo

// isClosed reports whether err is a closed pool's, for which no value is exported: "redigo: get on
// closed pool" (redigo v1.9.3, pool.go: Pool.GetContext) or "redisc: closed" (redisc v1.4.0,
// cluster.go: Cluster.Close). Such an error is final.
//
// With any other text the command counts as not sent, and the caller may try again until its ctx
// ends. private_test.go names the module if another version has changed a text.
func isClosed(err error) bool {
	return err.Error() == "redigo: get on closed pool" || err.Error() == "redisc: closed"
}
