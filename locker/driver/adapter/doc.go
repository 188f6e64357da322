// Package adapter is the toolkit for writing an adapter of a Redis client, an implementation of
// driver.Driver. It has the parts that are the same for every client: [Hub] shares one subscriber
// connection among many subscriptions, [ScriptCache] handles NOSCRIPT, [Await] returns from a call that
// ignores its context, [Base] closes in order, and [NewServerError] classifies error replies.
package adapter
