"""Where a Session stands: its project, its scopes and its agent, and whose word can reach it there."""

from dataclasses import dataclass

from sandbay.domain.ids import ProjectId
from sandbay.domain.trail import Level, whose


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose word a binding or a ceiling is: a key, at most one binding stands under each.

    `name`: a project's id, a scope's `kind:ref`, an agent's name; None for the deployment. `project`: whose agent.
    """

    level: Level
    name: str | None = None
    project: ProjectId | None = None

    @classmethod
    def of_project(cls, project: ProjectId) -> "Subject":
        """The project itself."""
        return cls(Level.PROJECT, project)

    @classmethod
    def of_scope(cls, name: str) -> "Subject":
        """The scope `kind:ref`."""
        return cls(Level.SCOPE, name)

    @classmethod
    def of_agent(cls, project: ProjectId, name: str) -> "Subject":
        """This project's agent of that name."""
        return cls(Level.AGENT, name, project)


DEPLOYMENT = Subject(Level.DEPLOYMENT)


@dataclass(frozen=True, slots=True)
class Path:
    """Where a Session stands. `scopes` are broad to narrow; an agent needs a project."""

    project: ProjectId | None = None
    project_name: str | None = None
    scopes: tuple[str, ...] = ()
    agent: str | None = None

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Everything on the way that can carry a binding, broad to narrow. Loading these is loading enough."""
        of_project = () if self.project is None else (Subject.of_project(self.project),)
        of_agent = () if self.project is None or self.agent is None else (Subject.of_agent(self.project, self.agent),)
        return (DEPLOYMENT, *of_project, *map(Subject.of_scope, self.scopes), *of_agent)

    def told(self, subject: Subject) -> str | None:
        """How the trail calls it: a project by its name, the others by their own."""
        return self.project_name if subject.level is Level.PROJECT else subject.name

    def called(self, subject: Subject) -> str:
        """The same in a sentence: `the scope team:growth`."""
        return whose(subject.level, self.told(subject))


NOWHERE = Path()
"""In no project: there is the deployment alone."""
