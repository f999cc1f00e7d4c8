"""An application in Flask, as its users write them."""

from __future__ import annotations

from flask import Flask, Response, redirect, request, session, url_for

application = Flask(__name__)
application.secret_key = "for tests alone"


@application.get("/")
def index():
    """Say where everything is."""
    return {"cart": url_for("cart"), "outside": url_for("cart", _external=True)}


@application.route("/cart", methods=["GET", "POST"])
def cart():
    """Keep what was chosen in a signed cookie."""
    if request.method == "POST":
        session["chosen"] = [*session.get("chosen", []), request.form["article"]]
        return redirect(url_for("cart"), code=303)
    return {"chosen": session.get("chosen", []), "client": request.remote_addr}


@application.post("/picture")
def picture():
    """Say how long a file is, and what it is called."""
    file = request.files["file"]
    return {"name": file.filename, "length": len(file.read())}


@application.get("/long")
def long():
    """Answer in parts of unknown number."""
    return Response((f"line {number}\n" for number in range(20_000)), mimetype="text/plain")


@application.get("/broken")
def broken():
    """Fail."""
    raise ValueError("what a pity")
